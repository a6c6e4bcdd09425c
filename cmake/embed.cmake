# Texts that are embedded into the programs: SQL, Lua, the sample of the settings, the messages.
function(embed name prefix root)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" OUT "") # OUT: another folder of the build than gen
  set(ARGN ${arg_UNPARSED_ARGUMENTS})
  set(out ${PROJECT_BINARY_DIR}/gen)
  if(arg_OUT)
    set(out ${PROJECT_BINARY_DIR}/${arg_OUT})
    file(MAKE_DIRECTORY ${out})
  endif()
  add_custom_command(
    OUTPUT ${out}/${name}_gen.c ${out}/${name}_gen.h
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DPREFIX=${prefix} -DROOT=${root} "-DFILES=${ARGN}"
            -DOUT=${out} -P ${PROJECT_SOURCE_DIR}/sql/embed.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/sql/embed.cmake
    COMMENT "Embedding ${name}" VERBATIM)
endfunction()
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/gen)
file(GLOB lua_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/common/lock/*.lua)
file(GLOB query_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sql/queries/*/*.sql)
file(GLOB tool_query_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/*/queries/*.sql)
file(GLOB audit_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sql/audit/*.sql)
file(GLOB migration_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sql/schema/*.sql)
file(GLOB function_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sql/functions/*.sql)
file(GLOB sample_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/config/*.cfg)
embed(lua LUA ${PROJECT_SOURCE_DIR}/common/lock ${lua_files})
embed(sql SQL ${PROJECT_SOURCE_DIR}/sql ${query_files})
embed(tool_sql SQL ${PROJECT_SOURCE_DIR}/tools ${tool_query_files})
embed(audit AUDIT ${PROJECT_SOURCE_DIR}/sql ${audit_files})
embed(migration MIGRATION ${PROJECT_SOURCE_DIR}/sql ${migration_files})
embed(function FUNCTION ${PROJECT_SOURCE_DIR}/sql ${function_files})
embed(objects OBJECTS ${PROJECT_SOURCE_DIR}/sql ${PROJECT_SOURCE_DIR}/sql/schema/objects.txt)
file(GLOB page_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/worker/http/page/*)
embed(message MESSAGE ${PROJECT_SOURCE_DIR}/worker ${PROJECT_SOURCE_DIR}/worker/cli/messages.txt)
embed(page PAGE ${PROJECT_SOURCE_DIR}/worker ${page_files})
embed(sample SAMPLE ${PROJECT_SOURCE_DIR}/config ${sample_files})
