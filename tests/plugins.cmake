# Plugins for the tests: bad/refused.c once per reason, and good/*.c.
set(REFUSED major minor size other_name no_name no_doc claims causal_only
  no_shape two_shapes half_row row_input
  option_name option_twice option_type option_outside option_aligned
  option_overlap option_default option_fraction option_range option_int_range
  option_no_choices option_choice_default option_endless config_size
  param_width param_init param_scale param_twice
  differ_version differ_option only_f32 only_f64)
add_custom_target(test_plugins)
foreach(case ${REFUSED})
  add_library(bad_${case} MODULE bad/refused.c)
  target_link_libraries(bad_${case} PRIVATE sinklab::plugin)
  target_compile_definitions(bad_${case} PRIVATE
    CASE_${case} CASE_NAME="${case}")
  set_target_properties(bad_${case} PROPERTIES PREFIX "" OUTPUT_NAME ${case}
    SUFFIX .so LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/bad)
  add_dependencies(test_plugins bad_${case})
endforeach()
file(GLOB GOOD CONFIGURE_DEPENDS good/*.c)
foreach(source ${GOOD})
  get_filename_component(name ${source} NAME_WE)
  sinklab_add_plugin(${name} ${source} WITH sinklab_warnings)
  set_target_properties(${name} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/good)
  add_dependencies(test_plugins ${name})
endforeach()
