// SPDX-License-Identifier: Apache-2.0
#include "serve/host.h"

#include "serve/submitter.h"

namespace mete::serve {

bool is_admin(const Identity& identity, const net::Peer& peer) {
  return peer.uid == 0 || peer.uid == identity.uid ||
         (identity.admin_gid && is_member(peer, *identity.admin_gid));
}

core::Caller caller_of(const Identity& identity, const net::Peer& peer) {
  return {peer.uid, is_admin(identity, peer), name_of_user(peer.uid)};
}

bool may_see(const Identity& identity, const core::Job& job, const net::Peer& peer) {
  return peer.uid == job.spec->uid || is_admin(identity, peer);
}

bool may_see_row(const Identity& identity, const core::Job& job, const net::Peer& peer) {
  return identity.others != core::Others::kTotals || may_see(identity, job, peer);
}

}  // namespace mete::serve
