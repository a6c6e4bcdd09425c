# Parts that the tests of the lock library need in its own build and in that of the program.
pkg_check_modules(LIBEVENT IMPORTED_TARGET libevent) # for the recipes of event loops
pkg_check_modules(LIBUV IMPORTED_TARGET libuv)
function(add_shim name) # also for programs without sanitizers
  add_library(${name} SHARED ${flags_root}/tests/testkit/${name}.c)
  target_link_libraries(${name} PRIVATE flags)
  target_compile_options(${name} PRIVATE -fno-sanitize=all)
  target_link_options(${name} PRIVATE -fno-sanitize=all)
endfunction()
add_shim(clock_shim)

function(wrap_lock_calls name)
  target_link_options(${name} INTERFACE -Wl,--wrap=rlock_link_begin,--wrap=rlock_read_keep,-u,__wrap_rlock_read_keep) # lock_counts.c counts them
  set(form acquire acquire_wait try lock extend release) # form.c makes them calls of an event loop, where it is told to
  list(TRANSFORM form PREPEND -Wl,--wrap=rlock_)
  target_link_options(${name} INTERFACE ${form} -u__wrap_rlock_release)
endfunction()

# A program of test files of a room; each file is a test of its own, labelled with the name of the room.
function(add_room label program) # files...
  get_filename_component(source ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/.. ABSOLUTE)
  add_executable(${program} ${ARGN})
  target_link_libraries(${program} PRIVATE testlib)
  target_compile_options(${program} PRIVATE -O1) # to compile them takes longer than what they compute
  foreach(file IN LISTS ARGN)
    get_filename_component(stem ${file} NAME_WE)
    add_test(NAME ${label}.${stem} COMMAND ${program} ${stem})
    set_tests_properties(${label}.${stem} PROPERTIES LABELS ${label} TIMEOUT 900
      ENVIRONMENT "LL_TEST_SOURCE=${source}" SKIP_RETURN_CODE 77)
  endforeach()
endfunction()
