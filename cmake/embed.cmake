# embed(): texts become arrays of a C file: SQL, Lua, the sample of the settings, the messages.
function(embed name prefix root)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" OUT "") # OUT: another folder of the build than gen
  set(ARGN ${arg_UNPARSED_ARGUMENTS})
  set(out ${PROJECT_BINARY_DIR}/gen)
  if(arg_OUT)
    set(out ${PROJECT_BINARY_DIR}/${arg_OUT})
  endif()
  file(MAKE_DIRECTORY ${out})
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embed_texts.cmake)
  add_custom_command(
    OUTPUT ${out}/${name}_gen.c ${out}/${name}_gen.h
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DPREFIX=${prefix} -DROOT=${root} "-DFILES=${ARGN}"
            -DOUT=${out} -P ${script}
    DEPENDS ${ARGN} ${script}
    COMMENT "Embedding ${name}" VERBATIM)
endfunction()
