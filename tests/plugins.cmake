# Plugins for the tests: bad/refused.c once per reason, bad/wrong_SHAPE.c once per
# mistake, good/*.c and the templates of 'plugin new'.
set(REFUSED major minor size other_name no_name no_doc properties causal_only
  no_shape two_shapes half_row half_block block_alone row_input
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
# Their kernels run, so both precisions are built; the baseline is enough.
set(WRONG_row wrong_backward keeps_state shares_memory past_row past_gradient
  reads_hidden_key trusts_scratch leaves_unwritten changes_input
  overwrites_dparam right_dparam not_nonnegative not_one not_null_mass
  not_invariant kink_not_declared crash endless leaves overflows single_differs
  block_differs block_past_end short_rows_only too_slow accepts_zero refuses_silently err_too_long
  err_two_lines)
set(WRONG_gate gate_swapped gate_past_end gate_declares_weights)
set(WRONG_mixer mixer_looks_ahead mixer_not_causal_only mixer_plan_silent
  mixer_past_scratch mixer_backward mixer_weights_unwritten mixer_weights_hidden
  mixer_shift_unseen)
set(HOSTILE start_spins start_sleeps start_ignores_signals start_stops start_reads
  start_crashes start_aborts start_bus start_exits_0 start_exits_at_once start_exits_3
  start_forks start_forks_many start_forks_session start_forks_twice
  start_kills_parent start_stops_parent start_kills_group start_overflows
  end_crashes end_exits end_sleeps atexit_crashes missing_symbol wild_name wild_options
  control_name validate_crashes validate_exits kernel_exits kernel_forks control_doc)
set(SINKLAB_VARIANTS "")
foreach(case ${HOSTILE})
  add_library(case_${case} INTERFACE)
  target_compile_definitions(case_${case} INTERFACE CASE_${case} CASE_NAME="${case}")
  sinklab_add_plugin(bad_${case} ${CMAKE_CURRENT_SOURCE_DIR}/bad/hostile.c
    WITH case_${case})
  set_target_properties(bad_${case} PROPERTIES OUTPUT_NAME ${case}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/hostile)
  add_dependencies(test_plugins bad_${case})
endforeach()
foreach(shape row gate mixer)
  foreach(case ${WRONG_${shape}})
    add_library(case_${case} INTERFACE)
    target_compile_definitions(case_${case} INTERFACE
      CASE_${case} CASE_NAME="${case}")
    sinklab_add_plugin(bad_${case} ${CMAKE_CURRENT_SOURCE_DIR}/bad/wrong_${shape}.c
      WITH case_${case})
    set_target_properties(bad_${case} PROPERTIES OUTPUT_NAME ${case}
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/bad)
    add_dependencies(test_plugins bad_${case})
  endforeach()
endforeach()
unset(SINKLAB_VARIANTS)

file(GLOB GOOD CONFIGURE_DEPENDS good/*.c
     ${PROJECT_SOURCE_DIR}/scripts/templates/*.c)
foreach(source ${GOOD})
  get_filename_component(name ${source} NAME_WE)
  sinklab_add_plugin(${name} ${source} WITH sinklab_warnings)
  set_target_properties(${name} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/good)
  add_dependencies(test_plugins ${name})
endforeach()
