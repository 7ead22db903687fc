// SPDX-License-Identifier: Apache-2.0
// Device attributes as one H200 returned them (driver 580.159.04, CUDA 13.0), by number from 1.
// device.cc sets those that differ between cards.
#pragma once

namespace simgpu {

inline constexpr int kAttributeValues[] = {
    0,  // number 0 does not exist
    1024,      1024,       1024,   64,        2147483647, 65535,     65535,  49152, 65536,
    32,        2147483647, 65536,  1980000,   512,        1,         132,    0,     0,
    1,         0,          131072, 131072,    65536,      16384,     16384,  16384, 32768,
    32768,     2048,       512,    1,         1,          0,         6,      0,     3201000,
    6016,      62914560,   2048,   3,         1,          32768,     2048,   1,     32768,
    32768,     8192,       8192,   32768,     0,          32,        32768,  32768, 2046,
    32768,     131072,     65536,  16384,     16384,      16384,     32768,  2048,  32768,
    32768,     2048,       32768,  32768,     2046,       268435456, 131072, 65000, 2097120,
    32768,     32768,      9,      0,         32768,      1,         1,      1,     233472,
    65536,     1,          0,      0,         0,          2,         0,      1,     1,
    1,         0,          0,      0,         1,          1,         232448, 0,     1,
    0,         0,          1,      1,         0,          0,         32,     1,     39321600,
    134217728, 1,          1024,   1,         1,          1,         1,      1,     1,
    100,       9,          1,      1,         1,          1,         1,      1,     4,
    1,         1,          1,      0,         -1,         0,         0,      0,     0,
    0,         0,          0,      590680286, 415174878,  1,         1,      0,     1,
    1,         0,          0,
};
inline constexpr int kAttributeCount = sizeof kAttributeValues / sizeof kAttributeValues[0];

}  // namespace simgpu
