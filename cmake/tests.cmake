# The tests: one program for each file, labelled with the name of its folder.
if(BUILD_TESTING)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
  file(GLOB testlib_sources CONFIGURE_DEPENDS tests/lib/*.c)
  include(cmake/lock_testkit.cmake)
  add_shim(call_shim)
  target_link_libraries(call_shim PRIVATE PkgConfig::HIREDIS PkgConfig::LIBPQ ${CMAKE_DL_LIBS})
  add_library(testlib STATIC ${testlib_sources})
  target_compile_definitions(testlib PRIVATE CLOCK_SHIM="$<TARGET_FILE:clock_shim>"
    CALL_SHIM="$<TARGET_FILE:call_shim>")
  add_dependencies(testlib clock_shim call_shim)
  target_link_libraries(testlib PUBLIC flags ledgerlock_tools ledgerlock_testkit PkgConfig::CMOCKA PkgConfig::HIREDIS)
  wrap_lock_calls(testlib)
  # The program with the hook of the tests set: failpoints and a trace.
  file(GLOB points_sources CONFIGURE_DEPENDS tests/points/*.c)
  add_executable(ledgerlock_points ${points_sources})
  target_link_libraries(ledgerlock_points PRIVATE strict ledgerlock_core PkgConfig::HIREDIS)
  target_link_options(ledgerlock_points PRIVATE -pie)
  # The program as somebody else would build it: with other generated files, found in `folder` before those of the build.
  function(add_other_program name folder)
    add_executable(${name} ops/main.c ${core_sources} ${ARGN})
    target_include_directories(${name} BEFORE PRIVATE ${PROJECT_BINARY_DIR}/${folder})
    target_compile_definitions(${name} PRIVATE LEDGERLOCK_VERSION="${PROJECT_VERSION}")
    target_link_libraries(${name} PRIVATE strict lock_inside PkgConfig::LIBPQ
      PkgConfig::LIBCONFIG PkgConfig::JANSSON PkgConfig::MICROHTTPD PkgConfig::HIREDIS)
    add_dependencies(${name} ledgerlock_core)
  endfunction()
  # With one job more: the registry with one line more, and a file.
  file(READ common/base/registry.h registry)
  string(REGEX REPLACE "(X\\(orders, ORDERS, [0-9]+, [0-9]+, [0-9]+, [0-9]+\\))" "\\1 X(toy, TOY, 1, 256, 500, 250)" registry "${registry}")
  file(CONFIGURE OUTPUT toy/common/base/registry.h CONTENT "${registry}" @ONLY)
  add_other_program(ledgerlock_toy toy tests/toy/toy.c ${core_generated})
  # A program to come: with one migration more.
  embed(migration MIGRATION ${PROJECT_SOURCE_DIR}/sql OUT next ${migration_files}
    ${PROJECT_SOURCE_DIR}/tests/upgrade/003_expand_note.sql)
  set(next_generated ${core_generated})
  list(REMOVE_ITEM next_generated ${PROJECT_BINARY_DIR}/gen/migration_gen.c)
  add_other_program(ledgerlock_next next ${next_generated} ${PROJECT_BINARY_DIR}/next/migration_gen.c)
  target_compile_definitions(testlib PRIVATE POINTS_PROGRAM="$<TARGET_FILE:ledgerlock_points>"
    CHECKER_PROGRAM="${PROJECT_SOURCE_DIR}/tests/checker/checker.py")
  target_compile_definitions(testlib PUBLIC LEDGERLOCK_VERSION="${PROJECT_VERSION}")
  add_dependencies(testlib ledgerlock ledgerlock_points ledgerlock-lab ledgerlock-bench ledgerlock-shop)
  foreach(label unit pool verbs chaos)
    file(GLOB test_files CONFIGURE_DEPENDS tests/${label}/test_*.c)
    foreach(file IN LISTS test_files)
      get_filename_component(stem ${file} NAME_WE)
      add_executable(${label}_${stem} ${file})
      target_link_libraries(${label}_${stem} PRIVATE testlib)
      if(stem STREQUAL "test_toy_job")
        add_dependencies(${label}_${stem} ledgerlock_toy)
        target_compile_definitions(${label}_${stem} PRIVATE TOY_PROGRAM="$<TARGET_FILE:ledgerlock_toy>")
      endif()
      if(stem STREQUAL "test_pool_reload")
        add_dependencies(${label}_${stem} ledgerlock_next)
        target_compile_definitions(${label}_${stem} PRIVATE NEXT_PROGRAM="$<TARGET_FILE:ledgerlock_next>")
      endif()
      if(stem MATCHES "^test_pool_tokens") # the test moves its own clocks too
        target_link_libraries(${label}_${stem} PRIVATE clock_shim)
      endif()
      list(APPEND ${label}_programs ${label}_${stem})
      add_test(NAME ${label}.${stem} COMMAND ${label}_${stem})
      set_tests_properties(${label}.${stem} PROPERTIES LABELS ${label} TIMEOUT 900
        ENVIRONMENT "LL_TEST_SOURCE=${PROJECT_SOURCE_DIR}" SKIP_RETURN_CODE 77)
    endforeach()
    add_custom_target(${label}_tests DEPENDS ${${label}_programs})
  endforeach()
  include(cmake/lock_tests.cmake)
  foreach(test service completion man)
    add_test(NAME verbs.${test} COMMAND ${PROJECT_SOURCE_DIR}/tests/install/${test}.sh ${PROJECT_BINARY_DIR})
    set_tests_properties(verbs.${test} PROPERTIES LABELS verbs TIMEOUT 900 SKIP_RETURN_CODE 77)
  endforeach()
  add_test(NAME sql.pgtap COMMAND ${PROJECT_SOURCE_DIR}/tests/sql/run.sh ${PROJECT_BINARY_DIR})
  set_tests_properties(sql.pgtap PROPERTIES LABELS sql TIMEOUT 900 SKIP_RETURN_CODE 77)
  add_test(NAME verbs.hardened COMMAND ${PROJECT_SOURCE_DIR}/tests/install/hardened.sh ${PROJECT_BINARY_DIR})
  set_tests_properties(verbs.hardened PROPERTIES LABELS verbs TIMEOUT 900 SKIP_RETURN_CODE 77)
  add_test(NAME verbs.demo COMMAND ${PROJECT_SOURCE_DIR}/tests/demo/run.sh $<TARGET_FILE:ledgerlock>
    ${PROJECT_BINARY_DIR})
  set_tests_properties(verbs.demo PROPERTIES LABELS verbs TIMEOUT 900 SKIP_RETURN_CODE 77)
  add_test(NAME model.quorum COMMAND ${PROJECT_SOURCE_DIR}/tests/model/run.sh)
  set_tests_properties(model.quorum PROPERTIES LABELS model TIMEOUT 900 SKIP_RETURN_CODE 77)
  file(GLOB lint_files CONFIGURE_DEPENDS tests/lint/*.sh)
  foreach(file IN LISTS lint_files)
    get_filename_component(stem ${file} NAME_WE)
    add_test(NAME lint.${stem} COMMAND ${file} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(lint.${stem} PROPERTIES LABELS lint TIMEOUT 900 SKIP_RETURN_CODE 77)
  endforeach()
  # Left to scripts/test --all. Measurements and the laboratory: verbs.test_bench, test_bench_scripts, test_lab. Waits:
  # verbs.test_migrate_waits. Speed:
  # pool.test_idle. Minutes of work: test_orders_of_two, test_real_data, test_shop. Failovers by time: test_lock_cluster_failover.
  set(later verbs.test_bench verbs.test_bench_scripts verbs.test_lab verbs.test_real_data verbs.test_migrate_waits
    pool.test_idle pool.test_orders_of_two pool.test_shop lock.test_lock_cluster_failover)
  foreach(test ${later})
    set_property(TEST ${test} APPEND PROPERTY LABELS later)
  endforeach()
  # Also left to it: what has a size, ten times as large.
  foreach(test liveness_rate parked)
    add_test(NAME pool.test_${test}_full COMMAND pool_test_${test})
    set_tests_properties(pool.test_${test}_full PROPERTIES LABELS later TIMEOUT 1800 SKIP_RETURN_CODE 77
      ENVIRONMENT "LL_TEST_SOURCE=${PROJECT_SOURCE_DIR};LL_TEST_SCALE=10")
  endforeach()
  # Run by --only threads as well. Children are killed and clocks are moved in others; these have threads of their own.
  foreach(test lock lock_batch lock_counter lock_loss lock_renew lock_signals lock_wait)
    set_property(TEST lock.test_${test} APPEND PROPERTY LABELS threads)
  endforeach()
  # Minutes each: they begin first, so that none of them ends alone.
  foreach(test chaos.test_redis_sick chaos.test_partition chaos.test_slow_ways chaos.test_collisions
      chaos.test_swarm pool.test_orders_of_two pool.test_pool_outage pool.test_pool_quorum model.quorum)
    set_property(TEST ${test} PROPERTY COST 100)
  endforeach()
endif()

