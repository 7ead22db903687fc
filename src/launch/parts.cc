// SPDX-License-Identifier: Apache-2.0
// See parts.h.
#include "launch/parts.h"

#include <dirent.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/file.h"

namespace mete::launch {

namespace {

using base::join_path;

// Each has a name under which programs load the driver's libraries; without one, that way is not
// hooked.
constexpr const char* kNeeded[] = {"libmete.so", "libmete-cuda.so", "libmete-nvml.so",
                                   "libmete-nvml-1.so"};

bool readable(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

std::vector<std::string> companions(const std::string& folder) {
  std::vector<std::string> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(folder.c_str()), closedir);
  if (!directory) return found;
  while (const dirent* entry = readdir(directory.get())) {
    const std::string name = entry->d_name;
    if (name.starts_with("libmete-") && name.ends_with(".so"))
      found.push_back(join_path(folder, name));
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Beside us in the build tree, in libexec when installed. "" if it is in neither.
std::string own_program(const std::string& folder, const std::string& prefix,
                        const std::string& name) {
  for (const std::string& path :
       {join_path(folder, name), join_path(prefix, METE_INSTALL_PROGRAMS "/" + name)})
    if (access(path.c_str(), X_OK) == 0) return path;
  return "";
}

Error missing(const std::string& name, const std::string& where) {
  return Error::io(name + " is missing: the program would not be capped")
      .with_evidence("looked in " + where)
      .with_hint("build or install all of mete: cmake --build --preset release");
}

}  // namespace

Result<Parts> find_parts() {
  char buffer[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", buffer, sizeof buffer);
  if (length < 0) return Error::from_errno("read /proc/self/exe", errno);
  return find_parts_from(base::parent_path(std::string_view(buffer, static_cast<size_t>(length))));
}

Result<Parts> find_parts_from(const std::string& folder) {
  const std::string prefix = base::parent_path(folder);
  struct Layout {
    std::string library;
    std::string simgpu;
  };
  const Layout layouts[] = {
      {join_path(prefix, METE_INSTALL_METER), join_path(prefix, METE_INSTALL_SIMGPU)},
      {join_path(prefix, "lib"), join_path(prefix, "simgpu")},
  };
  for (const Layout& layout : layouts) {
    const std::string meter = join_path(layout.library, "libmete.so");
    if (!readable(meter)) continue;
    if (meter.find_first_of(" :") != std::string::npos) {
      return Error::invalid("libmete.so cannot be preloaded from " + layout.library)
          .with_evidence("LD_PRELOAD cannot hold a path with a space or a colon")
          .with_hint("install mete under another path");
    }
    for (const char* name : kNeeded)
      if (!readable(join_path(layout.library, name))) return missing(name, layout.library);
    Parts parts;
    parts.preload.push_back(meter);
    for (std::string& path : companions(layout.library)) parts.preload.push_back(std::move(path));
    if (readable(join_path(layout.simgpu, "libcuda.so.1"))) parts.simgpu = layout.simgpu;
    parts.probe = own_program(folder, prefix, "mete-probe");
    parts.keeper = own_program(folder, prefix, "mete-keeper");
    parts.mover = own_program(folder, prefix, "mete-mover");
    parts.notify = own_program(folder, prefix, "mete-notify");
    parts.checkpoint = own_program(folder, prefix, "mete-checkpoint");
    parts.selftest = own_program(folder, prefix, "mete-selftest");
    parts.demo_program = own_program(folder, prefix, "mete-demo-program");
    return parts;
  }
  return missing(kNeeded[0], layouts[0].library + " and " + layouts[1].library);
}

}  // namespace mete::launch
