// SPDX-License-Identifier: Apache-2.0
// NVML inside a cap: only the granted cards, the size of the cap, the job's own processes with
// their charges. Each entry point is called once; its answer is compared with the accounts of the
// job, and for look-ups with the names of all cards of the machine.
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "selftest/driver.h"
#include "selftest/groups.h"
#include "selftest/ledger.h"
#include "selftest/rows.h"

namespace mete::selftest {

namespace {

const Ledger& books() { return Ledger::of_this_job(); }

std::string uuid_of(nvmlDevice_t device) {
  char text[96] = "";
  return NVML(nvmlDeviceGetUUID)(device, text, sizeof text) == NVML_SUCCESS ? text : "?";
}

template <class Count>
void count(const char* entry, Count ask) {
  Check check(kHonest, entry);
  unsigned cards = 0;
  if (check.did(ask(&cards))) check.equal("cards", cards, books().cards());
}

template <class Find>
void by_index(const char* entry, Find find) {
  Check check(kHonest, entry);
  nvmlDevice_t device = nullptr;
  if (!check.did(find(0, &device))) return;
  check.that(uuid_of(device) == books().uuid(), "index 0 is " + uuid_of(device));
  const nvmlReturn_t past = find(books().cards(), &device);
  check.equal("index " + std::to_string(books().cards()) + " answers",
              static_cast<std::uint64_t>(past), NVML_ERROR_INVALID_ARGUMENT);
}

// A granted card is found under its name, every other card is hidden. `name` picks the name out of
// what is known of a card from outside.
template <class Name, class Find>
void by_name(const Task& task, const char* entry, Name name, Find find) {
  Check check(kHonest, entry);
  bool others = false;
  bool named = false;
  for (const KnownCard& card : task.cards) {
    const std::string text = name(card);
    const bool granted = card.uuid == books().uuid();
    others = others || !granted;
    if (text.empty()) continue;
    named = true;
    nvmlDevice_t device = nullptr;
    const nvmlReturn_t result = find(text.c_str(), &device);
    if (granted) {
      if (!check.did(result)) return;
      check.that(uuid_of(device) == card.uuid, "finds the granted card by " + text);
    } else {
      check.equal("for " + text + " of another card answers", static_cast<std::uint64_t>(result),
                  NVML_ERROR_NOT_FOUND);
    }
  }
  if (!named && !check.failed())
    check.skip("this driver reports no such name of a card");
  else if (!others)
    check.note("there is no other card to hide");
}

void index_of(nvmlDevice_t device) {
  Check check(kHonest, "nvmlDeviceGetIndex");
  unsigned index = 0;
  if (check.did(NVML(nvmlDeviceGetIndex)(device, &index))) check.equal("index", index, 0);
}

void memory(nvmlDevice_t device) {
  // After the answer: the call itself may have found a dead process.
  const auto used = [] { return books().used(); };
  {
    Check check(kHonest, "nvmlDeviceGetMemoryInfo");
    nvmlMemory_t seen{};
    if (check.did(NVML(nvmlDeviceGetMemoryInfo)(device, &seen))) {
      check.equal("total", seen.total, books().limit());
      check.equal("used", seen.used, used());
    }
  }
  Check check(kHonest, "nvmlDeviceGetMemoryInfo_v2");
  nvmlMemory_v2_t seen{};
  seen.version = nvmlMemory_v2;
  if (check.did(NVML(nvmlDeviceGetMemoryInfo_v2)(device, &seen))) {
    check.equal("total", seen.total, books().limit());
    check.equal("used", seen.used, used());
    check.equal("reserved", seen.reserved, 0);
  }
}

// This process and no other: it is alone in the job during the check.
template <class Info, class List>
void compute_list(const char* entry, nvmlDevice_t device, List list) {
  Check check(kHonest, entry);
  std::vector<Info> infos(256);
  auto count = static_cast<unsigned>(infos.size());
  if (!check.did(list(device, &count, infos.data()))) return;
  check.equal("processes", count, 1);
  if (count != 1) return;
  check.equal("pid", infos[0].pid, static_cast<std::uint64_t>(getpid()));
  check.equal("bytes", infos[0].usedGpuMemory, books().charged_to(getpid()));
}

// Other processes that draw or compute on the card do not belong to the job.
template <class Info, class List>
void other_list(const char* entry, nvmlDevice_t device, List list) {
  Check check(kHonest, entry);
  std::vector<Info> infos(256);
  auto count = static_cast<unsigned>(infos.size());
  if (check.did(list(device, &count, infos.data()))) check.equal("processes", count, 0);
}

void detail_list(nvmlDevice_t device) {
  Check check(kHonest, "nvmlDeviceGetRunningProcessDetailList");
  std::vector<nvmlProcessDetail_v1_t> details(256);
  nvmlProcessDetailList_t list{};
  list.version = nvmlProcessDetailList_v1;
  list.mode = 0;  // compute
  list.numProcArrayEntries = static_cast<unsigned>(details.size());
  list.procArray = details.data();
  if (!check.did(NVML(nvmlDeviceGetRunningProcessDetailList)(device, &list))) return;
  if (!check.equal("processes", list.numProcArrayEntries, 1)) return;
  check.equal("pid", details[0].pid, static_cast<std::uint64_t>(getpid()));
  check.equal("bytes", details[0].usedGpuMemory, books().charged_to(getpid()));
}

void processes(nvmlDevice_t device) {
#define COMPUTE(name, type) compute_list<type>(#name, device, NVML(name))
#define OTHER(name, type) other_list<type>(#name, device, NVML(name))
  COMPUTE(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t);
  COMPUTE(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t);
  COMPUTE(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t);
  detail_list(device);
  OTHER(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t);
  OTHER(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t);
  OTHER(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t);
  OTHER(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t);
  OTHER(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t);
  OTHER(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t);
#undef COMPUTE
#undef OTHER
}

// Both names under which programs load NVML.
void roads() {
  for (const char* file : {"libnvidia-ml.so.1", "libnvidia-ml.so"}) {
    Check check(kRoads, std::string("dlopen ") + file);
    unsigned cards = 0;
    void* function = nvml_function_in(file, "nvmlDeviceGetCount_v2");
    if (check.that(function != nullptr, "opened") &&
        check.did(as_function<decltype(::nvmlDeviceGetCount_v2)>(function)(&cards)))
      check.equal("cards", cards, books().cards());
  }
}

}  // namespace

void check_nvml(const Task& task) {
  (void)start();
  nvmlDevice_t device = nullptr;
  {
    Check check(kHonest, "nvmlInit_v2");
    if (!check.did(NVML(nvmlInit_v2)())) return;
  }
  roads();
  count("nvmlDeviceGetCount", NVML(nvmlDeviceGetCount));
  count("nvmlDeviceGetCount_v2", NVML(nvmlDeviceGetCount_v2));
  by_index("nvmlDeviceGetHandleByIndex", NVML(nvmlDeviceGetHandleByIndex));
  by_index("nvmlDeviceGetHandleByIndex_v2", NVML(nvmlDeviceGetHandleByIndex_v2));
  const auto uuid = [](const KnownCard& card) { return card.uuid; };
  const auto bus = [](const KnownCard& card) { return card.bus; };
  const auto serial = [](const KnownCard& card) { return card.serial; };
  by_name(task, "nvmlDeviceGetHandleByUUID", uuid, NVML(nvmlDeviceGetHandleByUUID));
  by_name(task, "nvmlDeviceGetHandleByPciBusId", bus, NVML(nvmlDeviceGetHandleByPciBusId));
  by_name(task, "nvmlDeviceGetHandleByPciBusId_v2", bus, NVML(nvmlDeviceGetHandleByPciBusId_v2));
  by_name(task, "nvmlDeviceGetHandleBySerial", serial, NVML(nvmlDeviceGetHandleBySerial));
  if (NVML(nvmlDeviceGetHandleByUUID)(books().uuid().c_str(), &device) != NVML_SUCCESS) return;
  index_of(device);
  memory(device);
  processes(device);
}

}  // namespace mete::selftest
