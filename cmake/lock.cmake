# The lock library, independent of the rest; the only user of hiredis.
file(GLOB lock_sources CONFIGURE_DEPENDS common/lock/*.c)
list(FILTER lock_sources EXCLUDE REGEX "/tell\\.c$") # it is a part of the program alone
set(lock_headers common/lock/lock.h common/lock/lock_held.h common/lock/lock_loop.h)
foreach(file IN LISTS lock_headers) # as they are found when they are installed
  get_filename_component(name ${file} NAME)
  configure_file(${file} installed/ledgerlock/${name} COPYONLY)
endforeach()
set(lock_needs hiredis)
set(lock_links PkgConfig::HIREDIS)
if(HIREDIS_TLS_FOUND)
  list(APPEND lock_needs hiredis_ssl openssl)
  list(APPEND lock_links PkgConfig::HIREDIS_TLS)
endif()
add_library(lock_objects OBJECT ${lock_sources} ${PROJECT_BINARY_DIR}/gen/lua_gen.c)
target_compile_options(lock_objects PRIVATE -fvisibility=hidden) # the headers make their functions visible
target_compile_definitions(lock_objects PRIVATE lua_texts=rlock_lua_texts # a name that no program has
  $<$<BOOL:${HIREDIS_TLS_FOUND}>:LEDGERLOCK_TLS>)
target_include_directories(lock_objects PRIVATE ${PROJECT_BINARY_DIR}/installed)
target_link_libraries(lock_objects PRIVATE strict ${lock_links})
add_library(ledgerlock_lock STATIC $<TARGET_OBJECTS:lock_objects>)
target_link_libraries(ledgerlock_lock PRIVATE "$<BUILD_INTERFACE:${lock_links}>"
  $<INSTALL_INTERFACE:PkgConfig::LEDGERLOCK_NEEDS>)
target_include_directories(ledgerlock_lock INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/installed>)
target_compile_definitions(ledgerlock_lock INTERFACE $<BUILD_INTERFACE:lua_texts=rlock_lua_texts>)
set_target_properties(ledgerlock_lock PROPERTIES OUTPUT_NAME ledgerlock EXPORT_NAME ledgerlock_static)
add_library(ledgerlock_shared SHARED $<TARGET_OBJECTS:lock_objects>)
target_link_libraries(ledgerlock_shared PRIVATE "$<BUILD_INTERFACE:strict;${lock_links}>")
set_target_properties(ledgerlock_shared PROPERTIES OUTPUT_NAME ledgerlock EXPORT_NAME ledgerlock
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})

# `cmake --install BUILD --component lock` installs the library alone.
set(lock_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ledgerlock)
file(RELATIVE_PATH lock_pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
list(JOIN lock_needs " " lock_needs)
list(JOIN HIREDIS_LDFLAGS " " lock_libs)
list(JOIN HIREDIS_TLS_LDFLAGS " " lock_tls_libs)
configure_file(cmake/ledgerlock.pc.in ledgerlock.pc @ONLY)
configure_file(cmake/ledgerlockConfig.cmake.in ledgerlockConfig.cmake @ONLY)
write_basic_package_version_file(ledgerlockConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(TARGETS ledgerlock_lock ledgerlock_shared EXPORT ledgerlockTargets
  ARCHIVE COMPONENT lock LIBRARY COMPONENT lock INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT ledgerlockTargets NAMESPACE ledgerlock:: DESTINATION ${lock_cmake_dir} COMPONENT lock)
install(FILES ${PROJECT_BINARY_DIR}/ledgerlockConfig.cmake ${PROJECT_BINARY_DIR}/ledgerlockConfigVersion.cmake
  DESTINATION ${lock_cmake_dir} COMPONENT lock)
install(FILES ${PROJECT_BINARY_DIR}/ledgerlock.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT lock)
install(FILES ${lock_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ledgerlock COMPONENT lock)
install(FILES docs/man/ledgerlock-lock.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3 COMPONENT lock)
file(GLOB examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
install(FILES ${examples} config/redis-acl.example
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT lock)
