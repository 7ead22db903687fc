# SPDX-License-Identifier: Apache-2.0
# The Debian package and the archive: `tools/package` makes both from the release build (docs/adr/0021-packages.md).
# Both hold the same programs, which need glibc alone.

install(CODE "set(METE_SOURCE_DIR \"${PROJECT_SOURCE_DIR}\")\nset(METE_VERSION \"${PROJECT_VERSION}\")")
install(SCRIPT packaging/install.cmake)
install(FILES packaging/systemd/meted.socket DESTINATION lib/systemd/system)
install(FILES packaging/systemd/mete.sysusers DESTINATION lib/sysusers.d RENAME mete.conf)
install(FILES packaging/systemd/mete.tmpfiles DESTINATION lib/tmpfiles.d RENAME mete.conf)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/release CONTENT "version=${PROJECT_VERSION}\ngrant=${METE_GRANT_MAJOR}\n" @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/release packaging/config.toml DESTINATION ${METE_INSTALL_DATA})
install(FILES LICENSE CHANGELOG.md DESTINATION share/doc/mete)

foreach(target man completions)
  if(TARGET ${target})
    add_dependencies(shipped ${target})
  endif()
endforeach()

set(CPACK_PACKAGE_NAME mete)
set(CPACK_PACKAGE_VENDOR "the mete authors")
set(CPACK_PACKAGE_CONTACT "mete maintainers <maintainers@mete.example.org>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "share GPUs between programs, with exact limits on their memory")
set(CPACK_PACKAGE_DESCRIPTION "mete gives any CUDA program an exact limit on GPU memory, lets programs
wait for their share of a card, and keeps a queue of jobs that survives
crashes and reboots. It needs no code changes, no containers and no root.")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/packaging/cpack_generator.cmake)
set(CPACK_METE_SOURCE_DIR ${PROJECT_SOURCE_DIR})
set(CPACK_METE_BINARY_DIR ${CMAKE_BINARY_DIR})
set(CPACK_METE_PROCESSOR ${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)
