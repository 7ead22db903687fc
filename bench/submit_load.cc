// SPDX-License-Identifier: Apache-2.0
// Submits jobs over several open connections to a running daemon, each as fast as it is answered,
// and prints how many per second: submit_load SOCKET CONNECTIONS JOBS GPU [same|different]. Every
// answer is a job on disk. With `different` no two jobs have equal requests.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/process.h"
#include "core/request/gpu.h"
#include "net/http_client.h"
#include "wire/submit.h"

namespace {

using mete::Bytes;
using mete::Result;

std::string body_of(const std::string& gpu, unsigned number) {
  mete::wire::SubmitRequest request;
  request.spec.name = "load";
  request.spec.command = {"/bin/true"};
  request.spec.folder = "/";
  Result<mete::core::GpuRequest> parsed = mete::core::parse_gpu(gpu);
  if (!parsed) std::exit(64);
  request.spec.request.gpu = *parsed;
  if (number != 0) request.spec.time_s = number;
  request.spec.detached.emplace();
  request.spec.detached->umask = 022;
  request.environment = mete::base::own_environment();
  return mete::wire::encode(request);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: submit_load SOCKET CONNECTIONS JOBS GPU [same|different]\n");
    return 64;
  }
  const std::string socket = argv[1];
  const unsigned connections = static_cast<unsigned>(std::atoi(argv[2]));
  const unsigned jobs = static_cast<unsigned>(std::atoi(argv[3]));
  const std::string gpu = argv[4];
  const bool different = argc > 5 && std::string(argv[5]) == "different";
  std::vector<std::string> bodies;
  for (unsigned i = 0; i < (different ? jobs : 1); ++i)
    bodies.push_back(body_of(gpu, different ? 3600 + i : 0));
  std::atomic<unsigned> next{0};
  std::atomic<unsigned> refused{0};
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (unsigned c = 0; c < connections; ++c)
    threads.emplace_back([&] {
      Result<mete::net::HttpClient> client =
          mete::net::HttpClient::connect(socket, mete::net::Milliseconds(5000));
      if (!client) std::exit(69);
      for (unsigned i = next++; i < jobs; i = next++) {
        const auto reply =
            client->request("POST", "/v1/jobs", different ? bodies[i] : bodies.front());
        if (!reply || reply->status != 201) {
          if (refused++ == 0)
            std::fprintf(stderr, "refused: %s\n",
                         reply ? reply->body.c_str() : reply.error().message.c_str());
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::printf("%u jobs in %.3f s: %.0f a second, %u refused\n", jobs, seconds, jobs / seconds,
              refused.load());
  return refused == 0 ? 0 : 1;
}
