// SPDX-License-Identifier: Apache-2.0
// The one table of everything that the daemon serves. Routing, the order in which requests are
// served and the wait for the first reading of the cards follow from it; routes_test.cc compares it
// with docs/formats/openapi.yaml and requests each path as each kind of user.
#pragma once

#include <span>
#include <string_view>

#include "serve/call.h"
#include "serve/dispatcher.h"

namespace mete::serve {

struct Parts;

enum class Needs { kNothing, kCards };  // kCards: the request waits until the cards were read once

// Who may send the request. Other users get 403; for kRunner, and for all jobs if [sight] others is
// "totals", 404 as if there were no such job.
enum class Who {
  kEveryone,
  kSight,       // the user of the job and administrators; other users get less
  kOwner,       // the user of the job, sweep or reservation, and administrators
  kRunner,      // the process that runs the job
  kAdmin,       // administrators
  kDaemonUser,  // root, and the user that the daemon runs as
};

struct Route {
  std::string_view method;  // "GET"
  std::string_view path;    // "/v1/jobs/{id}/show": at most one part is in braces
  Needs needs;
  AnswerSize answer;
  Who who;  // enforced by the service for jobs, otherwise by the handler or the engine
  void (*handle)(Parts& parts, Call& call);
};

std::span<const Route> routes();
// nullptr: there is no route for this method and path.
const Route* find_route(std::string_view method, std::string_view path);
// The part of the path in place of the braces; "": the route has none.
std::string_view name_in(const Route& route, std::string_view path);
inline bool names_a_job(const Route& route) { return route.path.find("{id}") != route.path.npos; }

}  // namespace mete::serve
