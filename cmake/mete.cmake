# SPDX-License-Identifier: Apache-2.0
# The few functions that every folder's CMakeLists.txt uses.

add_library(mete_warnings INTERFACE)
target_compile_options(mete_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wundef -Wvla $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
# g++ 12 takes the pieces of a std::string for overlapping ones (its bug 105651).
target_compile_options(mete_warnings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
option(METE_WERROR "warnings are errors (our presets say so)" OFF)
if(METE_WERROR)
  target_compile_options(mete_warnings INTERFACE -Werror)
endif()

# Sanitizers go to our programs and tests. The meter and the simulated drivers are loaded into other people's
# processes and are built without them (tests/ run them *inside* sanitized programs instead).
add_library(mete_sanitize INTERFACE)
if(METE_SANITIZE)
  # g++ 12 sees uninitialised values in the standard library's own code once it is instrumented.
  target_compile_options(mete_sanitize INTERFACE -fsanitize=${METE_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  # Our fences order what other processes see, which the thread sanitizer does not look at.
  target_compile_options(mete_sanitize INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-tsan>)
  target_link_options(mete_sanitize INTERFACE -fsanitize=${METE_SANITIZE})
endif()

# One run of the compiler for several files: what they include is most of the work (a third of the time in all). The
# builds for arm64, the fuzzers and for development do without, so that every file still says what it needs.
option(METE_UNITY "compile several files at once (our release and sanitizer presets say so)" OFF)
set(METE_UNITY_FILES 8)
function(mete_unity target)  # further arguments: sources that stay apart, mostly as their own helpers have the names of others'
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${METE_UNITY} UNITY_BUILD_BATCH_SIZE ${METE_UNITY_FILES})
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# glibc's own parts: they held dladdr and pthread_create before 2.34, and are empty files since (src/abi/old_glibc.h).
set(METE_OLD_GLIBC_LIBRARIES -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -Wl,--as-needed)

# mete_self_contained(program): it needs glibc 2.34 and nothing else, so that one build runs on Debian 12, Ubuntu 22.04 and RHEL 9; and
# without libstdc++ to load it starts in two thirds of the time.
add_library(mete_portable OBJECT ${PROJECT_SOURCE_DIR}/src/base/portable.cc)
target_link_libraries(mete_portable PRIVATE mete_warnings)
function(mete_self_contained program)
  if(NOT METE_SANITIZE)
    target_link_options(${program} PRIVATE -static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--gc-sections)
    target_sources(${program} PRIVATE $<TARGET_OBJECTS:mete_portable>)
  endif()
endfunction()

# mete_library(base SOURCES a.cc b.cc USES base core PACKAGES fmt::fmt): target mete_base, alias mete::base.
# A folder without sources is a header-only target.
function(mete_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;APART;USES;PACKAGES" ${ARGN})
  list(TRANSFORM ARG_USES PREPEND "mete::")
  if(ARG_SOURCES)
    add_library(mete_${name} STATIC ${ARG_SOURCES})
    mete_unity(mete_${name} ${ARG_APART})
    target_include_directories(mete_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(mete_${name} PUBLIC ${ARG_USES} ${ARG_PACKAGES} mete_sanitize PRIVATE mete_warnings)
  else()
    add_library(mete_${name} INTERFACE)
    target_include_directories(mete_${name} INTERFACE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(mete_${name} INTERFACE ${ARG_USES} ${ARG_PACKAGES} mete_sanitize)
  endif()
  add_library(mete::${name} ALIAS mete_${name})
endfunction()

# mete_test(ledger_test LABEL unit SOURCES ledger_test.cc USES core): a GoogleTest program, one ctest entry.
function(mete_test name)
  if(NOT METE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;APART;USES;PACKAGES;ENVIRONMENT" ${ARGN})
  list(TRANSFORM ARG_USES PREPEND "mete::")
  find_package(GTest REQUIRED)
  find_package(Threads REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  mete_unity(${name} ${ARG_APART})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_USES} ${ARG_PACKAGES} GTest::gtest_main Threads::Threads
    mete_warnings mete_sanitize)
  # What is tested is optimised; the tests themselves compile in two thirds of the time this way.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(METE_SANITIZE)  # several times slower
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "METE_BUILD_DIR=${CMAKE_BINARY_DIR};METE_SOURCE_DIR=${PROJECT_SOURCE_DIR};${ARG_ENVIRONMENT}")
endfunction()

# mete_script_test(layers LABEL unit COMMAND ./check.py ...): any other test. It ends with 77 where it was skipped;
# cases of Python's unittest (-m unittest -v) that were skipped are found in its output (tests/checks/skips.py).
function(mete_script_test name)
  if(NOT METE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "COMMAND;ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(METE_SANITIZE)
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()
  add_test(NAME ${name} COMMAND ${ARG_COMMAND} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "METE_BUILD_DIR=${CMAKE_BINARY_DIR};METE_SOURCE_DIR=${PROJECT_SOURCE_DIR};${ARG_ENVIRONMENT}")
endfunction()
