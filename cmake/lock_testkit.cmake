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
