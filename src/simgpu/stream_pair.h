// SPDX-License-Identifier: Apache-2.0
// An entry point and its _ptsz twin: two functions that differ in what stream 0 means.
//   SIM_PAIR(cuStreamQuery, (CUstream stream), query(stream, per_thread))
#pragma once

#include "simgpu/driver.h"

#define SIM_PAIR(name, parameters, call) \
  CUresult name parameters {             \
    SIM_ENTRY_CONTEXT(name);             \
    constexpr bool per_thread = false;   \
    return call;                         \
  }                                      \
  CUresult name##_ptsz parameters {      \
    SIM_ENTRY_CONTEXT(name##_ptsz);      \
    constexpr bool per_thread = true;    \
    return call;                         \
  }                                      \
  static_assert(true, "ends with a semicolon")
