# The tests: one program for each folder, whose files are tests labelled with its name.
if(BUILD_TESTING)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
  file(GLOB testlib_sources CONFIGURE_DEPENDS tests/lib/*.c)
  add_subdirectory(labs/gateway) # a program of its own, which stands in for the other side of a payment
  include(cmake/lock_testkit.cmake)
  add_shim(call_shim)
  target_link_libraries(call_shim PRIVATE PkgConfig::HIREDIS PkgConfig::LIBPQ ${CMAKE_DL_LIBS})
  add_library(testlib STATIC ${testlib_sources})
  target_compile_definitions(testlib PRIVATE CLOCK_SHIM="$<TARGET_FILE:clock_shim>"
    CALL_SHIM="$<TARGET_FILE:call_shim>" GATEWAY_PROGRAM="$<TARGET_FILE:ledgerlock_gateway>")
  add_dependencies(testlib clock_shim call_shim ledgerlock_gateway)
  target_compile_options(testlib PRIVATE -O1)
  target_link_libraries(testlib PUBLIC flags ledgerlock_core ledgerlock_testkit PkgConfig::CMOCKA PkgConfig::HIREDIS)
  wrap_lock_calls(testlib)
  # The program with the hook of the tests set: failpoints and a trace.
  file(GLOB points_sources CONFIGURE_DEPENDS tests/points/*.c)
  add_executable(ledgerlock_points ${points_sources})
  target_link_libraries(ledgerlock_points PRIVATE strict ledgerlock_core PkgConfig::HIREDIS)
  target_link_options(ledgerlock_points PRIVATE -pie)
  # The program as somebody else would build it: with another generated file, found in `folder` before the one of the build.
  # Only files that include its header are compiled again; the linker takes the others from the archive of the build.
  function(add_other_program name folder header)
    files_that_include(${header} sources)
    list(FILTER sources INCLUDE REGEX "\\.c$")
    add_executable(${name} ops/main.c ${sources} ${ARGN})
    target_include_directories(${name} BEFORE PRIVATE ${PROJECT_BINARY_DIR}/${folder})
    target_link_libraries(${name} PRIVATE strict ledgerlock_core PkgConfig::HIREDIS)
  endfunction()
  # Files of the program that include a header, themselves or by another one.
  file(GLOB core_headers CONFIGURE_DEPENDS common/base/*.h common/pg/*.h worker/*/*.h ops/*/*.h)
  function(files_that_include header found)
    set(names ${header})
    set(all)
    set(rest ${core_sources} ${core_headers})
    while(names)
      list(POP_FRONT names name)
      foreach(file IN LISTS rest)
        file(STRINGS ${file} lines REGEX "^#include \"${name}\"")
        if(lines)
          list(APPEND all ${file})
          list(REMOVE_ITEM rest ${file})
          cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
          list(APPEND names ${file})
        endif()
      endforeach()
    endwhile()
    set(${found} ${all} PARENT_SCOPE)
  endfunction()
  # With one job more: the registry with one line more, and a file.
  file(READ common/base/registry.h registry)
  string(REGEX REPLACE "(X\\(payments, PAYMENTS, [0-9]+, [0-9]+, [0-9]+, [0-9]+\\))" "\\1 X(toy, TOY, 1, 256, 500, 250)" registry "${registry}")
  file(CONFIGURE OUTPUT toy/common/base/registry.h CONTENT "${registry}" @ONLY)
  add_other_program(ledgerlock_toy toy common/base/registry.h tests/toy/toy.c)
  # A program to come: with one migration more.
  embed(migration MIGRATION ${PROJECT_SOURCE_DIR}/sql OUT next ${migration_files}
    ${PROJECT_SOURCE_DIR}/tests/upgrade/003_expand_note.sql)
  add_other_program(ledgerlock_next next migration_gen.h ${PROJECT_BINARY_DIR}/next/migration_gen.c)
  target_compile_definitions(testlib PRIVATE POINTS_PROGRAM="$<TARGET_FILE:ledgerlock_points>"
    CHECKER_PROGRAM="${PROJECT_SOURCE_DIR}/tests/checker/checker.py")
  add_dependencies(testlib ledgerlock ledgerlock_points)
  foreach(label unit pool verbs chaos)
    file(GLOB test_files CONFIGURE_DEPENDS tests/${label}/test_*.c)
    add_room(${label} ${label}_tests ${test_files})
  endforeach()
  target_compile_definitions(pool_tests PRIVATE TOY_PROGRAM="$<TARGET_FILE:ledgerlock_toy>" NEXT_PROGRAM="$<TARGET_FILE:ledgerlock_next>")
  add_dependencies(pool_tests ledgerlock_toy ledgerlock_next)
  target_link_libraries(pool_tests PRIVATE clock_shim) # test_pool_tokens moves its own clocks too
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
  # Left to scripts/test --all. Waits: verbs.test_migrate_waits. Speed: pool.test_idle. Minutes of work: test_orders_of_two,
  # test_real_data. Failovers by time: test_lock_cluster_failover.
  set(later verbs.test_real_data verbs.test_migrate_waits pool.test_idle pool.test_orders_of_two lock.test_lock_cluster_failover)
  foreach(test ${later})
    set_property(TEST ${test} APPEND PROPERTY LABELS later)
  endforeach()
  # A part of its own, by tests/citus/run.sh: a Citus cluster is not everywhere.
  set_property(TEST pool.test_citus pool.test_citus_roles pool.test_citus_load APPEND PROPERTY LABELS later citus)
  # Also left to it: what has a size, ten times as large.
  foreach(test liveness_rate parked)
    add_test(NAME pool.test_${test}_full COMMAND pool_tests test_${test})
    set_tests_properties(pool.test_${test}_full PROPERTIES LABELS later TIMEOUT 1800 SKIP_RETURN_CODE 77
      ENVIRONMENT "LL_TEST_SOURCE=${PROJECT_SOURCE_DIR};LL_TEST_SCALE=10")
  endforeach()
  # And rows that vary what others show: those that .every leaves out.
  foreach(test blame first_come liveness pool_quorum pool_refusals)
    add_test(NAME pool.test_${test}_later COMMAND pool_tests test_${test})
    set_tests_properties(pool.test_${test}_later PROPERTIES LABELS later TIMEOUT 900 SKIP_RETURN_CODE 77
      ENVIRONMENT "LL_TEST_SOURCE=${PROJECT_SOURCE_DIR};LL_TEST_ROWS=later")
  endforeach()
  # Run by --only threads as well. Children are killed and clocks are moved in others; these have threads of their own.
  foreach(test lock lock_batch lock_counter lock_loss lock_renew lock_signals lock_wait)
    set_property(TEST lock.test_${test} APPEND PROPERTY LABELS threads)
  endforeach()
  # The longest begin first, so that none of them ends alone.
  foreach(test chaos.test_redis_sick chaos.test_partition chaos.test_slow_ways chaos.test_collisions
      chaos.test_swarm pool.test_orders_of_two pool.test_pool_outage pool.test_pool_quorum model.quorum
      pool.test_blame pool.test_first_come pool.test_liveness pool.test_pgbouncer pool.test_pool_months pool.test_pool_refusals
      verbs.test_hosts)
    set_property(TEST ${test} PROPERTY COST 100)
  endforeach()
endif()
