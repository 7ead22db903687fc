# SPDX-License-Identifier: Apache-2.0
# Part of `cmake --install`: what depends on the prefix, and the notices.
cmake_policy(VERSION 3.25)
set(root "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" prefix "${CMAKE_INSTALL_PREFIX}")
set(CMAKE_INSTALL_FULL_BINDIR "${prefix}/bin")
configure_file("${METE_SOURCE_DIR}/packaging/systemd/meted.service.in" "${root}/lib/systemd/system/meted.service" @ONLY)
execute_process(COMMAND "${METE_SOURCE_DIR}/tools/notices" "${root}/share/doc/mete" "${METE_VERSION}" COMMAND_ERROR_IS_FATAL ANY)
