// SPDX-License-Identifier: Apache-2.0
// An empty library whose SONAME is another name of a driver. It needs libcuda.so.1, which under our
// preload is the meter: whoever asks ld.so for this name and then for a symbol finds the meter's.
static const char mete_alias __attribute__((used)) = 1;
