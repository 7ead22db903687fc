// SPDX-License-Identifier: Apache-2.0
// What administrators have set: drained cards, quotas, reservations. manage.cc decides on changes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/job/event.h"
#include "core/order/quota.h"
#include "core/order/reservation.h"

namespace mete::core {

class Administration {
 public:
  const std::map<std::string, std::string>& drained() const { return drained_; }
  const std::map<std::string, Quota>& quotas() const { return quotas_; }
  const std::vector<Reservation>& reservations() const { return reservations_; }
  std::uint64_t last_reservation() const { return last_reservation_; }

  void apply(const CardDrained& card) { drained_[card.uuid] = card.by; }
  void apply(const CardUndrained& card) { drained_.erase(card.uuid); }
  // A quota without any limit removes the user's quota.
  void apply(const QuotaSet& set);
  // METE_ASSERTs that reservations are numbered without a gap.
  void apply(const Reserved& reserved);
  void apply(const Unreserved& unreserved);

  void restore(std::map<std::string, std::string> drained, std::map<std::string, Quota> quotas,
               std::vector<Reservation> reservations, std::uint64_t last_reservation);

 private:
  std::map<std::string, std::string> drained_;  // UUID → administrator who drained it
  std::map<std::string, Quota> quotas_;         // by user
  std::vector<Reservation> reservations_;       // by number
  std::uint64_t last_reservation_ = 0;
};

}  // namespace mete::core
