// SPDX-License-Identifier: Apache-2.0
// What a driver without streams, modules, graphs and pools would do: weak, so that the parts that
// know better replace them one by one.
#include "simgpu/state.h"

#define SIM_WEAK __attribute__((weak))

namespace simgpu {

SIM_WEAK CUresult stream_submit(CUstream, bool, Work work, const void* arguments, size_t) {
  return work(const_cast<void*>(arguments));
}
SIM_WEAK CUresult context_synchronize(Context* context) { return context->sticky; }
SIM_WEAK CUresult wait_for_default_stream(bool) { return current_context()->sticky; }
SIM_WEAK void streams_end(Context*) {}
SIM_WEAK void modules_end(Context*) {}
SIM_WEAK void graphs_end(Context*) {}
SIM_WEAK void pools_end(Device*) {}

}  // namespace simgpu
