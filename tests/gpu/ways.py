#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every allocation path with functions that ctypes found: ways.cc as a library asks for each by name.

    mete cap --gpu 1G -- python3 tests/gpu/ways.py LIBRARY libcuda.so.1|libcuda.so|process

`process` is ctypes.CDLL(None): what is loaded into the process already.
"""
import ctypes
import sys

library, name = sys.argv[1:]
driver = ctypes.CDLL(None if name == "process" else name)


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)
def lookup(symbol):
    try:
        return ctypes.cast(getattr(driver, symbol.decode()), ctypes.c_void_p).value
    except AttributeError:
        return None


sys.exit(ctypes.CDLL(library).ways_run(f"ctypes {name}".encode(), lookup))
