// SPDX-License-Identifier: Apache-2.0
// METE_SIM_FAULT is a comma list of FUNCTION:WHEN:ACTION. FUNCTION is an exported name, a trailing
// '*' matches any ending; WHEN is the number of the call in this process, from 1, or '*'; ACTION is
// fail=CODE, block=MS or block, kill, stop, after-kill, after-stop, fault=CODE (fails and sticks to
// the context). Every rule counts its own calls. An invalid list is reported once on stderr, then
// ignored. METE_SIM_DELAY_US=MAX[,SEED]: every call waits a random time up to MAX, before and after
// its work.
#include "simgpu/trouble.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "simgpu/driver.h"

namespace simgpu {

int trouble = -1;

namespace {

enum class Action { kFail, kFault, kBlock, kKill, kStop, kAfterKill, kAfterStop };

struct Rule {
  char function[80];
  bool prefix;
  unsigned long when;  // 0: every call
  Action action;
  long value;  // CODE or MS; -1: for ever
  unsigned long seen;
};

constexpr int kMaxRules = 32;
Rule rules[kMaxRules];
int rule_count = 0;
unsigned delay_max_us = 0;
uint64_t delay_state = 0;

constexpr int kAfterDelay = 1;
constexpr int kAfterKillBit = 2;
constexpr int kAfterStopBit = 4;

bool read_action(const char* text, Rule* rule) {
  rule->value = -1;
  if (sscanf(text, "fail=%ld", &rule->value) == 1) {
    rule->action = Action::kFail;
  } else if (sscanf(text, "fault=%ld", &rule->value) == 1) {
    rule->action = Action::kFault;
  } else if (strcmp(text, "block") == 0 || sscanf(text, "block=%ld", &rule->value) == 1) {
    rule->action = Action::kBlock;
  } else if (strcmp(text, "kill") == 0) {
    rule->action = Action::kKill;
  } else if (strcmp(text, "stop") == 0) {
    rule->action = Action::kStop;
  } else if (strcmp(text, "after-kill") == 0) {
    rule->action = Action::kAfterKill;
  } else if (strcmp(text, "after-stop") == 0) {
    rule->action = Action::kAfterStop;
  } else {
    return false;
  }
  return true;
}

bool read_rule(const char* text, Rule* rule) {
  char when[16];
  char action[32];
  if (sscanf(text, "%79[^:]:%15[^:]:%31s", rule->function, when, action) != 3) return false;
  const size_t length = strlen(rule->function);
  rule->prefix = length > 1 && rule->function[length - 1] == '*';
  if (rule->prefix) rule->function[length - 1] = '\0';
  char* end = when;
  rule->when = strcmp(when, "*") == 0 ? 0 : strtoul(when, &end, 10);
  if (strcmp(when, "*") != 0 && (*end != '\0' || rule->when == 0)) return false;
  rule->seen = 0;
  return read_action(action, rule);
}

void read_faults(const char* list) {
  while (*list != '\0') {
    const size_t length = strcspn(list, ",");
    char one[160];
    if (length < sizeof one && rule_count < kMaxRules) {
      memcpy(one, list, length);
      one[length] = '\0';
      if (length > 0 && read_rule(one, &rules[rule_count])) {
        ++rule_count;
      } else if (length > 0) {
        fprintf(stderr, "mete-simgpu: METE_SIM_FAULT: not understood: %s\n", one);
      }
    }
    list += length;
    if (*list == ',') ++list;
  }
}

void look_at_environment() {
  const Guard guard;
  if (trouble >= 0) return;
  const char* faults = getenv("METE_SIM_FAULT");
  if (faults != nullptr) read_faults(faults);
  const char* delay = getenv("METE_SIM_DELAY_US");
  if (delay != nullptr) {
    unsigned long most = 0;
    unsigned long long seed = 0;
    const int fields = sscanf(delay, "%lu,%llu", &most, &seed);
    if (fields >= 1) delay_max_us = static_cast<unsigned>(most > 10000000 ? 10000000 : most);
    // Without a seed every process has its own delays; with one they repeat, per process id order.
    delay_state = fields >= 2 ? seed * 2 + 1 : static_cast<uint64_t>(getpid()) * 2 + 1;
  }
  __atomic_store_n(&trouble, rule_count > 0 || delay_max_us > 0 ? 1 : 0, __ATOMIC_RELEASE);
}

void sleep_us(uint64_t us) {
  timespec left{static_cast<time_t>(us / 1000000), static_cast<long>(us % 1000000) * 1000};
  while (nanosleep(&left, &left) != 0) {
  }
}

void random_delay() {
  const uint64_t before = __atomic_fetch_add(&delay_state, 0x9e3779b97f4a7c15ull, __ATOMIC_RELAXED);
  uint64_t x = before;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  sleep_us((x ^ (x >> 31)) % (delay_max_us + 1));
}

bool matches(Rule* rule, const char* name) {
  const bool same = rule->prefix ? strncmp(rule->function, name, strlen(rule->function)) == 0
                                 : strcmp(rule->function, name) == 0;
  if (!same) return false;
  const unsigned long call = __atomic_add_fetch(&rule->seen, 1, __ATOMIC_RELAXED);
  return rule->when == 0 || rule->when == call;
}

// Applies the matching rules. Returns the code to fail with, and what to do after the call.
CUresult apply_before(const char* name, int* after) {
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < rule_count; ++i) {
    Rule* rule = &rules[i];
    if (!matches(rule, name)) continue;
    switch (rule->action) {
      case Action::kFail:
        result = static_cast<CUresult>(rule->value);
        break;
      case Action::kFault:
        result = set_sticky(current_context(), static_cast<CUresult>(rule->value));
        break;
      case Action::kBlock:
        do {
          sleep_us(rule->value < 0 ? 3600000000ull : static_cast<uint64_t>(rule->value) * 1000);
        } while (rule->value < 0);
        break;
      case Action::kKill:
        kill(getpid(), SIGKILL);
        break;
      case Action::kStop:
        kill(getpid(), SIGSTOP);
        break;
      case Action::kAfterKill:
        *after |= kAfterKillBit;
        break;
      case Action::kAfterStop:
        *after |= kAfterStopBit;
        break;
    }
  }
  if (delay_max_us > 0) {
    random_delay();
    *after |= kAfterDelay;
  }
  return result;
}

}  // namespace

void Entry::begin() {
  if (__atomic_load_n(&trouble, __ATOMIC_ACQUIRE) < 0) look_at_environment();
  if (trouble > 0) result_ = apply_before(name_, &after_);
}

void Entry::finish() {
  if ((after_ & kAfterDelay) != 0) random_delay();
  if ((after_ & kAfterKillBit) != 0) kill(getpid(), SIGKILL);
  if ((after_ & kAfterStopBit) != 0) kill(getpid(), SIGSTOP);
}

int not_modelled(const char* name) {
  const Entry entry(name, Need::kNothing);
  return entry.refused() ? entry.result() : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace simgpu
