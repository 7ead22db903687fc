// SPDX-License-Identifier: Apache-2.0
// See kernel_files.h.
#include "cli/kernel_files.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <memory>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"

namespace mete::cli {

namespace {

using base::join_path;

constexpr char kFile[] = "kernel.json";

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(folder.c_str()), closedir);
  if (!directory) return names;
  while (const dirent* entry = readdir(directory.get()))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end());
  return names;
}

Result<wire::KernelSpec> read_kernel(const std::string& folder) {
  const Result<std::string> text = base::read_regular(join_path(folder, kFile));
  if (!text) return text.error();
  return wire::decode_kernel_spec(*text);
}

}  // namespace

std::string kernel_name(std::string_view display_name) {
  std::string name;
  for (const char c : base::to_lower(display_name)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    if (plain)
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (!name.empty() && (name.back() == '-' || name.back() == '.')) name.pop_back();
  name.erase(0, name.find_first_not_of(".-"));
  return name.substr(0, 100);
}

std::string kernels_of_prefix(const std::string& prefix) {
  return join_path(prefix, "share/jupyter/kernels");
}

std::string kernels_of_user() {
  if (const std::string data = base::variable("JUPYTER_DATA_DIR"); !data.empty())
    return join_path(data, "kernels");
  std::string data = base::variable("XDG_DATA_HOME");
  if (data.empty()) data = join_path(base::home_folder(), ".local/share");
  return join_path(data, "jupyter/kernels");
}

std::vector<std::string> kernel_folders(const std::string& prefix) {
  std::vector<std::string> folders;
  if (const std::string path = base::variable("JUPYTER_PATH"); !path.empty())
    for (const std::string_view each : base::split(path, ':'))
      if (!each.empty()) folders.push_back(join_path(each, "kernels"));
  folders.push_back(kernels_of_user());
  for (const std::string& each :
       {prefix, base::variable("VIRTUAL_ENV"), std::string("/usr/local"), std::string("/usr")})
    if (!each.empty()) folders.push_back(kernels_of_prefix(each));
  std::vector<std::string> once;
  for (std::string& folder : folders)
    if (std::find(once.begin(), once.end(), folder) == once.end())
      once.push_back(std::move(folder));
  return once;
}

std::vector<KernelFile> find_kernels(const std::vector<std::string>& folders) {
  std::vector<KernelFile> kernels;
  for (const std::string& folder : folders)
    for (const std::string& name : names_in(folder)) {
      KernelFile kernel{name, join_path(folder, name), {}};
      Result<wire::KernelSpec> spec = read_kernel(kernel.folder);
      if (!spec || !spec->mete) continue;
      kernel.spec = *std::move(spec);
      kernels.push_back(std::move(kernel));
    }
  return kernels;
}

Result<std::string> write_kernel(const std::string& folder, const std::string& name,
                                 const wire::KernelSpec& spec, bool replace) {
  const std::string place = join_path(folder, name);
  const std::string path = join_path(place, kFile);
  if (access(path.c_str(), F_OK) == 0) {
    const Result<wire::KernelSpec> there = read_kernel(place);
    const bool ours = there && there->mete;
    if (!ours)
      return Error::invalid("there is a kernel " + base::quote(name) + " that is not mete's")
          .with_evidence(path)
          .with_hint("choose another --name");
    if (!replace)
      return Error::invalid("there is a kernel " + base::quote(name) + " already")
          .with_evidence(path)
          .with_hint("--replace replaces it, another --name keeps both");
  }
  if (Result<void> r = base::make_directories(place, 0755); !r) return std::move(r).error();
  if (Result<void> r = base::write_atomic(path, wire::encode(spec), 0644); !r)
    return std::move(r).error();
  return path;
}

Result<void> remove_kernel(const KernelFile& kernel) {
  const std::string path = join_path(kernel.folder, kFile);
  if (unlink(path.c_str()) != 0) return Error::from_errno("remove " + path, errno);
  if (rmdir(kernel.folder.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST)
    return Error::from_errno("remove " + kernel.folder, errno);
  return {};
}

}  // namespace mete::cli
