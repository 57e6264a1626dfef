# One source compiled once per precision and instruction set, and attention
# plugins made of that. sinklab's own build uses this file, and installs it.

# The instruction sets beside the baseline, and the compiler's flags for each.
# One more: a name here, its flags, and a line of SL_ISA_LIST in
# core/base/isa_list.h.
set(SINKLAB_ISAS v3 v4 CACHE INTERNAL "")
set(SINKLAB_FLAGS_v3 -march=x86-64-v3 CACHE INTERNAL "")
set(SINKLAB_FLAGS_v4 -march=x86-64-v4 -mprefer-vector-width=512
    CACHE INTERNAL "")

# sinklab_variants(out): the instruction sets beside the baseline to compile for.
# The variable SINKLAB_VARIANTS may hold fewer of them; other processors
# than x86-64 have the baseline only.
function(sinklab_variants out)
  set(variants ${SINKLAB_ISAS})
  if(DEFINED SINKLAB_VARIANTS)
    set(variants ${SINKLAB_VARIANTS})
  endif()
  foreach(variant ${variants})
    if(NOT variant IN_LIST SINKLAB_ISAS)
      list(JOIN SINKLAB_ISAS " and " known)
      message(FATAL_ERROR "SINKLAB_VARIANTS: there is no variant '${variant}'; "
              "expected a list of ${known}")
    endif()
  endforeach()
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(variants "")
  endif()
  set(${out} ${variants} PARENT_SCOPE)
endfunction()

# sinklab_variant_objects(out prefix flags sources...)
# out: the object files of every variant, from targets <prefix>_<precision>_<isa>
# that link to the target 'flags'.
function(sinklab_variant_objects out prefix flags)
  set(objects)
  sinklab_variants(variants)
  foreach(precision f32 f64)
    foreach(isa base ${variants})
      set(target ${prefix}_${precision}_${isa})
      add_library(${target} OBJECT ${ARGN})
      target_link_libraries(${target} PRIVATE ${flags})
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
      if(precision STREQUAL "f32")
        target_compile_definitions(${target} PRIVATE SL_SINGLE)
      endif()
      if(NOT isa STREQUAL "base")
        target_compile_definitions(${target} PRIVATE SL_ISA=_${isa})
        target_compile_options(${target} PRIVATE ${SINKLAB_FLAGS_${isa}})
      endif()
      list(APPEND objects $<TARGET_OBJECTS:${target}>)
    endforeach()
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()

# sinklab_add_plugin(name source [WITH targets...])
# The plugin <name>.so from one C file that includes <sinklab/plugin.h>: a target
# 'name' of kind MODULE. WITH: targets whose flags and libraries it also gets.
function(sinklab_add_plugin name source)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "WITH")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "sinklab_add_plugin(${name}): a plugin is one source "
            "file; unexpected: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  add_library(${name}_flags INTERFACE)
  target_link_libraries(${name}_flags INTERFACE sinklab::plugin ${arg_WITH})
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    target_compile_options(${name}_flags INTERFACE -O3)
  endif()
  sinklab_variant_objects(objects ${name} ${name}_flags ${source})
  add_library(${name} MODULE ${objects})
  target_link_libraries(${name} PRIVATE ${name}_flags)
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX .so LINKER_LANGUAGE C)
endfunction()

# What a plugin is compiled with. Hidden: only the descriptors leave the object.
# SINKLAB_INCLUDE_DIR comes from who includes this file.
if(NOT TARGET sinklab::plugin)
  add_library(sinklab::plugin INTERFACE IMPORTED GLOBAL)
  set_target_properties(sinklab::plugin PROPERTIES
    INTERFACE_COMPILE_FEATURES c_std_11
    INTERFACE_COMPILE_OPTIONS
    "-fvisibility=hidden;-fno-math-errno;-fno-trapping-math;-ffp-contract=fast"
    INTERFACE_INCLUDE_DIRECTORIES "${SINKLAB_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES m)
endif()
