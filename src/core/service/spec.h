// SPDX-License-Identifier: Apache-2.0
// A service as its file says it, without the job that a replica is: which requests are its own,
// when a replica is ready, how many requests it takes, how many replicas there are and when they
// sleep.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "core/service/autoscale.h"

namespace mete::core::service {

inline constexpr std::size_t kMaxName = 63;  // of a service, as of a host
inline constexpr std::size_t kMaxModels = 100;
inline constexpr std::uint32_t kMaxConcurrency = 65'536;
inline constexpr std::int64_t kParkAfterS = 60;  // where a service may have no replica awake

// How it is found out that a replica answers.
struct Probe {
  enum class Kind { kTcp, kHttp, kExec };
  Kind kind = Kind::kTcp;
  std::string path = {};                  // of kHttp: "/health"
  std::vector<std::string> command = {};  // of kExec
  bool operator==(const Probe&) const = default;
};

// Whose requests are let in where the peer's user is known.
enum class Access { kOwner, kUsers, kAnyone };

struct ServiceSpec {
  std::string name;
  std::vector<std::string> models = {};  // values of "model" that mean it; empty: the name
  Probe ready = {};
  std::optional<Probe> live = {};
  std::uint32_t concurrency = 16;  // requests inside one replica
  std::uint32_t queue = 100;       // requests that wait, of the service
  Autoscaling scaling = {};
  std::optional<std::int64_t> park_after_s = {};  // never_parks() says what absence means
  bool parks_never = false;                       // `park_after: never`
  bool resident = false;                          // `resident: always`
  std::int64_t hold_s = 120;
  std::int64_t max_wait_s = 30;
  std::int64_t start_timeout_s = 600;
  std::vector<std::string> no_wake = {"/metrics", "/favicon.ico"};
  Access access = Access::kOwner;
  std::vector<std::string> origins = {};
  std::optional<Bytes> body_limit = {};
  bool operator==(const ServiceSpec&) const = default;

  // After how many seconds without requests a replica is parked; nullopt: never.
  std::optional<std::int64_t> parks_after_s() const;
};

// invalid: a name that cannot be part of an address, a model twice, bounds; what check(Autoscaling)
// refuses. The message names the key.
Result<void> check(const ServiceSpec& spec);
// invalid: letters, digits and hyphens, a letter first, no hyphen last, at most kMaxName; and not
// "v1", whose address is that of all models.
Result<void> check_service_name(std::string_view name);

}  // namespace mete::core::service
