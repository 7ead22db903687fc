// SPDX-License-Identifier: Apache-2.0
// Limits on the number and size of jobs, for all users together and for one user.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mete::core {

inline constexpr std::size_t kMaxUnfinished = 200'000;  // jobs that wait or run
// One user may have half of the unfinished jobs; the last twentieth is for administrators.
inline constexpr std::size_t kMaxUnfinishedOfUser = kMaxUnfinished / 2;
inline constexpr std::size_t kUnfinishedForAdmins = kMaxUnfinished / 20;
inline constexpr std::size_t kMaxReservations = 1'000;
inline constexpr std::size_t kMaxAfter = 100;
inline constexpr std::size_t kMaxNameBytes = 255;     // names and labels are in every list
inline constexpr std::size_t kMaxLabelBytes = 4'096;  // keys and values together
// The texts of a spec, without contents: they are in every snapshot.
inline constexpr std::size_t kMaxSpecBytes = 64 << 10;
inline constexpr std::uint64_t kMaxContentBytes = 64 << 20;  // one environment, script or command
inline constexpr std::uint64_t kMaxTimeS = 10 * 366 * 86'400;

}  // namespace mete::core
