# SPDX-License-Identifier: Apache-2.0
# The simulated libnvidia-ml.so.1: every name of the real one, bound to itself, libc alone.
add_library(simgpu_nvml SHARED
  nvml_device.cc nvml_memory.cc nvml_models.cc nvml_readings.cc nvml_rest.cc nvml_system.cc nvml_topology.cc
  nvml_world.cc client.cc start_server.cc)
target_include_directories(simgpu_nvml PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(simgpu_nvml PRIVATE -fno-exceptions -fno-rtti -fvisibility=hidden
  -fvisibility-inlines-hidden -fno-threadsafe-statics)
target_link_libraries(simgpu_nvml PRIVATE mete_warnings ${METE_OLD_GLIBC_LIBRARIES})
target_link_options(simgpu_nvml PRIVATE -Wl,-Bsymbolic -Wl,--as-needed -Wl,--no-undefined
  -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/nvml.map)
set_target_properties(simgpu_nvml PROPERTIES OUTPUT_NAME nvidia-ml VERSION 1 SOVERSION 1
  LIBRARY_OUTPUT_DIRECTORY ${METE_SIMGPU_DIR}
  LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/nvml.map)
install(TARGETS simgpu_nvml LIBRARY DESTINATION ${METE_INSTALL_SIMGPU})
