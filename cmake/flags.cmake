# Compiler flags: `flags` for everything, `strict` for the installed programs and libraries.
include_guard(GLOBAL)
include(CheckCCompilerFlag)
option(LEDGERLOCK_WERROR "Treat warnings as errors" OFF)
if(NOT CMAKE_BUILD_TYPE AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, Asan or Tsan" FORCE)
endif()
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_FLAGS_ASAN "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer")
set(CMAKE_C_FLAGS_TSAN "-O1 -g -fsanitize=thread -fno-omit-frame-pointer")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
get_filename_component(flags_root ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
add_library(flags INTERFACE)
target_compile_definitions(flags INTERFACE _POSIX_C_SOURCE=200809L)
target_compile_options(flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wformat=2
  -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wvla -Wwrite-strings
  -Wcast-qual -Wundef -Wnull-dereference -Wswitch-enum -Wimplicit-fallthrough
  -fno-strict-aliasing)
target_include_directories(flags INTERFACE ${flags_root} ${PROJECT_BINARY_DIR}/gen)
if(LEDGERLOCK_WERROR)
  target_compile_options(flags INTERFACE -Werror)
endif()
add_library(strict INTERFACE)
target_link_libraries(strict INTERFACE flags)
target_compile_options(strict INTERFACE -Wconversion -Wsign-conversion)
if(NOT CMAKE_BUILD_TYPE MATCHES "^(Asan|Tsan)$")
  target_compile_options(flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
endif()
# Flags that not every compiler has.
foreach(flag -Wlogical-op -Wduplicated-cond -fstack-protector-strong -fstack-clash-protection
        -fcf-protection -ftrivial-auto-var-init=zero)
  string(MAKE_C_IDENTIFIER "HAVE${flag}" have)
  check_c_compiler_flag(${flag} ${have})
  if(${have})
    target_compile_options(flags INTERFACE ${flag})
  endif()
endforeach()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
target_link_options(flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
# The linker drops the mark of -fcf-protection when one file lacks it, and Debian's start files do. Shadow stacks
# need nothing of the code, so the mark may be set; branch tracking would need it in those files, too.
include(CheckLinkerFlag)
check_linker_flag(C -Wl,-z,shstk HAVE_z_shstk)
if(HAVE_fcf_protection AND HAVE_z_shstk)
  target_link_options(flags INTERFACE -Wl,-z,shstk)
endif()

