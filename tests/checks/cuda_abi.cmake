# SPDX-License-Identifier: Apache-2.0
# Our declarations of the CUDA driver interface against a real cuda.h, where one of CUDA 13 is installed.
find_path(METE_CUDA_HEADERS cuda.h HINTS $ENV{CUDA_HOME}/include /usr/local/cuda/include)
if(METE_CUDA_HEADERS)
  file(STRINGS ${METE_CUDA_HEADERS}/cuda.h METE_CUDA_HEADER_VERSION REGEX "^#define CUDA_VERSION 13[0-9]*")
endif()
if(METE_CUDA_HEADER_VERSION)
  mete_test(cuda_abi_test LABEL unit
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/cuda_abi_test.cc ${CMAKE_CURRENT_LIST_DIR}/cuda_abi_ours.cc
            ${CMAKE_CURRENT_LIST_DIR}/cuda_abi_real.cc)
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/cuda_abi_real.cc PROPERTIES
    INCLUDE_DIRECTORIES ${METE_CUDA_HEADERS} COMPILE_OPTIONS "-Wno-undef")
endif()
