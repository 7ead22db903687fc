// SPDX-License-Identifier: Apache-2.0
// How fast the model of a request is found that is last in 10 MiB: one long text (an image), many
// messages with escapes, many numbers. In pieces of 16 KiB, as from a socket.
#include <benchmark/benchmark.h>

#include <string>

#include "proxy/model_field.h"

namespace {

using namespace mete;

constexpr std::size_t kBytes = 10 << 20;

std::string body_of(int shape) {
  if (shape == 0) return R"({"image":")" + std::string(kBytes, 'A') + R"(","model":"m"})";
  std::string body = shape == 1 ? R"({"messages":[)" : R"({"input":[)";
  for (unsigned i = 0; body.size() < kBytes; ++i)
    body += shape == 1
                ? R"({"role":"user","content":"What is the capital of France?\nAnd \"Spain\"?"},)"
                : std::to_string(i * 2654435761u % 100'000) + ",";
  body.back() = ']';
  return body + R"(,"model":"m"})";
}

void find_model(benchmark::State& state) {
  const std::string body = body_of(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    proxy::ModelField field;
    for (std::size_t at = 0; at < body.size(); at += 16 << 10)
      field.feed(std::string_view(body).substr(at, 16 << 10));
    if (!field.model()) state.SkipWithError("no model");
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(body.size()));
}
BENCHMARK(find_model)->Arg(0)->Arg(1)->Arg(2)->ArgName("text, messages, numbers");

}  // namespace
