# Beside the program: the unit of systemd, a sample of the settings, and what the program prints of its own tables.
file(READ config/ledgerlock.service unit)
string(REPLACE /usr/bin/ledgerlock ${CMAKE_INSTALL_FULL_BINDIR}/ledgerlock unit "${unit}")
file(CONFIGURE OUTPUT ledgerlock.service CONTENT "${unit}" @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ledgerlock.service DESTINATION lib/systemd/system)
install(FILES config/ledgerlock.cfg DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/ledgerlock/examples)

function(printed_by_program name file)
  add_custom_command(OUTPUT ${name} COMMAND ledgerlock help ${ARGN} > ${name}.new
    COMMAND ${CMAKE_COMMAND} -E rename ${name}.new ${name} DEPENDS ledgerlock VERBATIM)
  list(APPEND printed ${PROJECT_BINARY_DIR}/${name})
  set(printed ${printed} PARENT_SCOPE)
  cmake_path(GET file PARENT_PATH folder)
  cmake_path(GET file FILENAME leaf)
  install(FILES ${PROJECT_BINARY_DIR}/${name} DESTINATION ${folder} RENAME ${leaf})
endfunction()
printed_by_program(ledgerlock.bash ${CMAKE_INSTALL_DATADIR}/bash-completion/completions/ledgerlock --completion bash)
printed_by_program(ledgerlock.cfg.5 ${CMAKE_INSTALL_MANDIR}/man5/ledgerlock.cfg.5 --man)
add_custom_target(ledgerlock_printed ALL DEPENDS ${printed})
