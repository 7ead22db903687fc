// SPDX-License-Identifier: Apache-2.0
// See environment.h. job_environment() copies the variables and then sets its own in this order:
// --env, the grant and the visible cards with LD_PRELOAD (or "no GPU"), the identity of the job,
// for one of several processes the variables of torchrun and Slurm, and the path of the simulated
// drivers. A variable of a surrounding job that this job does not set is removed.
#include "launch/environment.h"

#include <algorithm>

#include "base/text.h"

namespace mete::launch {

namespace {

constexpr std::string_view kDecidedByTheGrant[] = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
                                                   "NVIDIA_VISIBLE_DEVICES"};
constexpr std::string_view kSanitizers[] = {"libasan.so",  "libtsan.so",   "liblsan.so",
                                            "libubsan.so", "libhwasan.so", "libclang_rt."};

bool is_sanitizer(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  return std::any_of(std::begin(kSanitizers), std::end(kSanitizers),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool has_name(const std::string& line, const std::string& name) {
  return line.size() > name.size() && line[name.size()] == '=' && line.starts_with(name);
}

std::string value_of(const std::vector<std::string>& lines, const std::string& name) {
  for (const std::string& line : lines)
    if (has_name(line, name)) return line.substr(name.size() + 1);
  return "";
}

void unset(std::vector<std::string>& lines, const std::string& name) {
  std::erase_if(lines, [&](const std::string& line) { return has_name(line, name); });
}

void set(std::vector<std::string>& lines, const std::string& name, const std::string& value) {
  std::string wanted = name + "=" + value;
  const auto found = std::find_if(lines.begin(), lines.end(),
                                  [&](const std::string& line) { return has_name(line, name); });
  if (found == lines.end()) {
    lines.push_back(std::move(wanted));
  } else {
    *found = std::move(wanted);
    lines.erase(std::remove_if(found + 1, lines.end(),
                               [&](const std::string& line) { return has_name(line, name); }),
                lines.end());
  }
}

void set_no_gpu(std::vector<std::string>& lines) {
  // -1 and not "": some programs take an empty variable for an unset one.
  set(lines, "CUDA_VISIBLE_DEVICES", "-1");
  set(lines, "NVIDIA_VISIBLE_DEVICES", "void");
  set(lines, "METE_GPU_MEM_BYTES", "0");
  unset(lines, "METE_GRANT");
}

void set_cards(std::vector<std::string>& lines, const JobEnvironment& job) {
  set(lines, "CUDA_VISIBLE_DEVICES", base::join(job.visible, ","));
  set(lines, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  set(lines, "NVIDIA_VISIBLE_DEVICES", base::join(job.uuids, ","));
  if (job.parkable)
    set(lines, "METE_PARKABLE", "1");
  else
    unset(lines, "METE_PARKABLE");
  set(lines, "LD_PRELOAD", merge_preload(value_of(lines, "LD_PRELOAD"), job.preload));
  // A program linked with ASan insists on being first, which a preload always is. Our libraries
  // replace nothing that ASan does, so the order is harmless; without this setting such a program
  // would not start.
  const std::string asan = value_of(lines, "ASAN_OPTIONS");
  set(lines, "ASAN_OPTIONS", (asan.empty() ? "" : asan + ":") + "verify_asan_link_order=0");
  set(lines, "METE_GRANT", job.grant_path);
  set(lines, "METE_GPU_MEM_BYTES", std::to_string(job.limit.count()));
}

}  // namespace

std::string merge_preload(const std::string& current, const std::vector<std::string>& ours) {
  std::vector<std::string> first;
  std::vector<std::string> rest;
  std::string text = current;
  std::replace(text.begin(), text.end(), ' ', ':');  // ld.so accepts both
  for (const std::string_view part : base::split(text, ':')) {
    const std::string entry(part);
    if (entry.empty() || std::find(ours.begin(), ours.end(), entry) != ours.end()) continue;
    (is_sanitizer(entry) ? first : rest).push_back(entry);
  }
  first.insert(first.end(), ours.begin(), ours.end());
  first.insert(first.end(), rest.begin(), rest.end());
  return base::join(first, ":");
}

std::vector<std::string> job_environment(const std::vector<std::string>& current,
                                         const JobEnvironment& job) {
  std::vector<std::string> lines = current;
  for (const auto& [name, value] : job.extra) set(lines, name, value);
  if (job.grant_path.empty()) {
    set_no_gpu(lines);
  } else {
    set_cards(lines, job);
  }
  set(lines, "METE_JOB_ID", job.job);
  set(lines, "METE_ATTEMPT", std::to_string(job.attempt));
  unset(lines, "METE_JOB_TOKEN");
  if (!job.token.empty()) set(lines, "METE_JOB_TOKEN", job.token);
  unset(lines, "METE_PART");
  if (job.rank) {
    set(lines, "RANK", std::to_string(job.rank->rank));
    set(lines, "LOCAL_RANK", std::to_string(job.rank->rank));
    set(lines, "WORLD_SIZE", std::to_string(job.rank->world));
    set(lines, "LOCAL_WORLD_SIZE", std::to_string(job.rank->world));
    set(lines, "MASTER_ADDR", "127.0.0.1");
    set(lines, "MASTER_PORT", job.rank->port);
    set(lines, "METE_PART", std::to_string(job.rank->part));
    // SLURM_PROCID is set only if the job has a Slurm environment.
    for (const auto& [name, value] : job.extra)
      if (name == "SLURM_PROCID" || name == "SLURM_LOCALID")
        set(lines, name, std::to_string(job.rank->rank));
  }
  if (!job.simgpu.empty()) {
    const std::string path = value_of(lines, "LD_LIBRARY_PATH");
    const bool there = path == job.simgpu || path.starts_with(job.simgpu + ":");
    if (!there) set(lines, "LD_LIBRARY_PATH", path.empty() ? job.simgpu : job.simgpu + ":" + path);
  }
  return lines;
}

Result<std::pair<std::string, std::string>> parse_env(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return Error::invalid("--env " + base::quote(text) + " is not NAME=VALUE")
        .with_hint(
            "write --env NAME=VALUE; variables that are already set are passed on by themselves");
  }
  std::string name = text.substr(0, equals);
  for (const std::string_view decided : kDecidedByTheGrant) {
    if (name != decided && !name.starts_with("METE_")) continue;
    return Error::invalid("--env cannot set " + name + ": mete sets it for the program")
        .with_hint(
            "choose cards with --devices, memory with --gpu, and indices with --visible index");
  }
  return std::pair(std::move(name), text.substr(equals + 1));
}

}  // namespace mete::launch
