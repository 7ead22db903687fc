// SPDX-License-Identifier: Apache-2.0
// mete doctor: the driver and the cards. Runs in a helper process; the driver may hang it.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/cards_table.h"
#include "cli/doctor.h"
#include "launch/parts.h"
#include "node/nvml_driver.h"
#include "runner/job_runner.h"

namespace mete::cli {

namespace {

constexpr seam::Milliseconds kReadLimit{15'000};

void check_devices(Checks& checks) {
  for (const char* path : {"/dev/nvidiactl", "/dev/nvidia-uvm"}) {
    if (access(path, F_OK) != 0) {
      checks.push_back({Verdict::kWarn, path, "does not exist",
                        "nvidia-modprobe -u -c=0, or give the container its devices"});
    } else if (access(path, R_OK | W_OK) != 0) {
      checks.push_back(
          {Verdict::kFail, path, "may not be opened by this user",
           "ls -l " + std::string(path) + ": you need to be in the group that may use the cards"});
    }
  }
}

// The driver's kernel module: "580.159.04" from /proc/driver/nvidia/version, "" without one.
std::string kernel_module() {
  const Result<std::string> text = base::read_all("/proc/driver/nvidia/version");
  if (!text) return "";
  for (const std::string_view word :
       base::split(std::string_view(*text).substr(0, text->find('\n')), ' '))
    if (!word.empty() && word.find_first_not_of("0123456789.") == std::string_view::npos &&
        word.find('.') != std::string_view::npos)
      return std::string(word);
  return "";
}

std::string cuda_text(int version) {
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Persistence mode is read here: NvmlDriver has no use for it.
std::string persistence_of(const node::NvmlLibrary& nvml, unsigned index) {
  nvmlDevice_t device = nullptr;
  nvmlEnableState_t mode{};
  if (node::try_nvml(nvml.nvmlDeviceGetHandleByIndex_v2, index, &device) != NVML_SUCCESS ||
      node::try_nvml(nvml.nvmlDeviceGetPersistenceMode, device, &mode) != NVML_SUCCESS)
    return "";
  return mode == NVML_FEATURE_ENABLED ? ", persistence on" : ", persistence off";
}

void check_card(const seam::CardReading& card, const std::string& persistence, Checks& checks) {
  const std::string index = std::to_string(card.index);
  Check check{Verdict::kOk, "card " + index, card.name};
  if (card.total) check.evidence += ", " + to_string(*card.total);
  check.evidence += persistence;
  if (card.state == seam::CardState::kLost) {
    check.verdict = Verdict::kFail;
    check.evidence = "lost: it fell off the bus or needs a reset";
    check.fix = "sudo nvidia-smi --gpu-reset -i " + index + ", or reboot";
  } else if (card.mig.value_or(false)) {
    check.verdict = Verdict::kWarn;
    check.evidence += ", split into MIG slices: nothing is granted on it";
    check.fix = "sudo nvidia-smi -i " + index + " -mig 0";
  } else if (card.compute_mode == seam::ComputeMode::kProhibited) {
    check.verdict = Verdict::kWarn;
    check.evidence += ", compute mode prohibited: nothing is granted on it";
    check.fix = "sudo nvidia-smi -i " + index + " -c DEFAULT";
  } else if (card.compute_mode == seam::ComputeMode::kExclusiveProcess) {
    check.verdict = Verdict::kInfo;
    check.evidence += ", exclusive process: one job of one process at a time";
    check.fix = "sudo nvidia-smi -i " + index + " -c DEFAULT";
  } else if (!card.total) {
    check.verdict = Verdict::kWarn;
    check.evidence += ", does not say how large it is: nothing is granted on it";
  }
  checks.push_back(std::move(check));
}

void check_nvml(const std::string& library, Checks& checks) {
  const Result<std::unique_ptr<node::NvmlDriver>> driver = node::NvmlDriver::open(library);
  if (!driver) {
    const Error& error = driver.error();
    const std::string said = error.message + (error.evidence.empty() ? "" : ": " + error.evidence);
    const std::string advice = driver_advice(said, std::getenv("METE_SIM"));
    checks.push_back(
        {Verdict::kFail, "NVML", said, advice.empty() ? "nvidia-smi, does it work?" : advice});
    return;
  }
  if (const Result<seam::DriverIdentity> identity = (*driver)->identity()) {
    std::string text = "driver " + identity->version;
    if (identity->cuda_version) text += ", " + cuda_text(*identity->cuda_version);
    checks.push_back({Verdict::kOk, "version", text});
    const std::string module = !base::variable("METE_SIM").empty() ? "" : kernel_module();
    if (!module.empty() && module != identity->version)
      checks.push_back({Verdict::kWarn, "kernel module",
                        "is of version " + module + ", the libraries of " + identity->version,
                        "reboot: the driver was updated, and its old kernel module still runs"});
  }
  const Result<std::vector<seam::CardReading>> cards = (*driver)->read_all(kReadLimit);
  if (!cards) {
    checks.push_back({Verdict::kFail, "cards", cards.error().message, "nvidia-smi, does it work?"});
    return;
  }
  if (cards->empty())
    checks.push_back({Verdict::kFail, "cards", "the driver sees no card",
                      "lspci | grep -i nvidia; in a container: --gpus all"});
  const Result<std::unique_ptr<node::NvmlLibrary>> nvml = node::NvmlLibrary::open(library);
  for (const seam::CardReading& card : *cards)
    check_card(card, nvml ? persistence_of(**nvml, card.index) : "", checks);
}

}  // namespace

void check_driver(Checks& checks) {
  const Result<launch::Parts> found = launch::find_parts();
  const launch::Parts parts = found ? *found : launch::Parts{};
  const bool simulated = !base::variable("METE_SIM").empty();
  if (simulated && parts.simgpu.empty()) return;  // check_program reports it
  if (simulated)
    checks.push_back({Verdict::kInfo, "simulation",
                      "METE_SIM=" + base::variable("METE_SIM") + ": no real card is used"});
  for (const char* name : {"libnvidia-ml.so.1", "libcuda.so.1"}) {
    const std::string library = runner::driver_library(parts, simulated, name);
    if (dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr) {
      checks.push_back({Verdict::kOk, name, "found and loads"});
      continue;
    }
    const char* said = dlerror();
    const std::string why = said == nullptr ? "does not load" : said;
    checks.push_back({Verdict::kFail, name, why, driver_advice(why, std::getenv("METE_SIM"))});
  }
  if (checks.back().verdict == Verdict::kOk && !simulated) check_devices(checks);
  const std::string nvml = runner::driver_library(parts, simulated, "libnvidia-ml.so.1");
  if (dlopen(nvml.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr) check_nvml(nvml, checks);
}

}  // namespace mete::cli
