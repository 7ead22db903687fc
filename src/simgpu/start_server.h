// SPDX-License-Identifier: Apache-2.0
// Finds the server of a simulation directory, or starts it. One starter wins by a file lock, the
// others wait for it and connect. Needs only libc; leaves no zombie, no signal, no descriptor.
#pragma once

namespace simgpu {

// A connected, close-on-exec stream socket, or -1. Bounded in time.
int open_server(const char* folder);

// Connects to the socket in `folder` without starting anything: descriptor or -1 (errno set).
int connect_socket(const char* folder);

// Binds and listens on the socket in `folder`: descriptor or -1 (errno set). For the server.
int listen_socket(const char* folder);

// Takes the start lock of `folder` (blocking or not): descriptor or -1. Closing it releases the
// lock.
int take_start_lock(const char* folder, bool wait);

}  // namespace simgpu
