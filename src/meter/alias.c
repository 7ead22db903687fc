// SPDX-License-Identifier: Apache-2.0
// An empty library whose SONAME is another name of a driver. It needs libcuda.so.1, which is the
// meter under our preload: a program that asks ld.so for this name and then for a symbol finds the
// meter's symbol.
static const char mete_alias __attribute__((used)) = 1;
