# SPDX-License-Identifier: Apache-2.0
# Run by cpack on the installed tree before it is packed: what only this kind of package has, and times and modes that do not depend on
# the machine.
cmake_policy(VERSION 3.25)
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
set(source ${CPACK_METE_SOURCE_DIR})
set(doc ${root}/share/doc/mete)
if(CPACK_GENERATOR STREQUAL "TGZ")
  file(COPY ${source}/packaging/tarball/install.sh ${source}/README.md ${source}/LICENSE DESTINATION ${root})
else()
  set(doc ${root}/usr/share/doc/mete)
  file(COPY ${source}/packaging/config.toml DESTINATION ${root}/etc/mete)
  file(REMOVE ${root}/usr/share/mete/config.toml ${doc}/LICENSE)
  file(COPY ${source}/packaging/debian/copyright DESTINATION ${doc})
  file(MAKE_DIRECTORY ${root}/usr/share/lintian/overrides)
  file(COPY_FILE ${source}/packaging/debian/lintian-overrides ${root}/usr/share/lintian/overrides/mete)
  execute_process(COMMAND date -u -R -d "@$ENV{SOURCE_DATE_EPOCH}" OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE)
  file(WRITE ${doc}/changelog.Debian "mete (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  file(RENAME ${doc}/CHANGELOG.md ${doc}/changelog)
  execute_process(COMMAND sh -ec "gzip -9n '${doc}/changelog' '${doc}/changelog.Debian' '${doc}/NOTICE' && find '${root}/usr/share/man' -type f -exec gzip -9n {} +"
    COMMAND_ERROR_IS_FATAL ANY)
endif()
execute_process(COMMAND sh -ec "chmod -R u=rwX,go=rX '${root}' && find '${root}' -type f -name '*.so*' -exec chmod a-x {} + &&
  find '${root}' -depth -exec touch -h -d '@$ENV{SOURCE_DATE_EPOCH}' {} +" COMMAND_ERROR_IS_FATAL ANY)
