// SPDX-License-Identifier: Apache-2.0
// The meaning of each request: one function per operation, which reads or changes the store and
// fills a reply. Never blocks, never fails the server. A hello checks the protocol and builds the
// machine; a snapshot adds up cards and processes; the rest works on pieces by their id.
#include <string.h>

#include <algorithm>

#include "simgpu/server/clock.h"
#include "simgpu/server/server.h"

namespace simgpu {

void Server::answer(Client* client, const Request& request, const char* payload) {
  Reply reply{};
  std::string text;
  const uint64_t* a = request.a;
  const ClientId id = client->id;
  switch (static_cast<Op>(request.op)) {
    case Op::kHello:
      reply.status = hello(client, request, payload, &reply, &text);
      break;
    case Op::kSnapshot:
      text = snapshot();
      break;
    case Op::kTake:
      reply.status = store_.take(id, static_cast<uint32_t>(a[0]), a[1],
                                 static_cast<MemoryClass>(a[2]), &reply.v[0]);
      break;
    case Op::kGive:
      reply.status = store_.give(id, a[0]);
      break;
    case Op::kResize:
      reply.status = store_.resize(id, a[0], a[1]);
      break;
    case Op::kUsage:
      reply.status = store_.usage(static_cast<uint32_t>(a[0]), &reply.v[0], &reply.v[1]);
      break;
    case Op::kWrite:
      note_copy(client, a[0], request.payload);
      reply.status = store_.write(id, a[0], a[1], payload, request.payload);
      break;
    case Op::kRead:
      if (a[2] > kMaxPayload) {
        reply.status = 1;
        break;
      }
      note_copy(client, a[0], a[2]);
      text.resize(a[2]);
      reply.status = store_.read(id, a[0], a[1], text.data(), a[2]);
      if (reply.status != 0) text.clear();
      break;
    case Op::kFill:
      note_copy(client, a[0], a[3] * a[4]);
      reply.status = store_.fill(
          id, a[0],
          {a[1], a[2], a[3], a[4], static_cast<uint32_t>(a[5] >> 32), static_cast<uint32_t>(a[5])});
      break;
    case Op::kCopy:
      note_copy(client, a[0], a[4]);
      reply.status = store_.copy(id, {a[0], a[1]}, {a[2], a[3]}, a[4]);
      break;
    case Op::kIpcExport:
      reply.status = store_.ipc_export(id, a[0], a[1], a[2], reply.v);
      break;
    case Op::kIpcOpen: {
      IpcToken found;
      reply.status = store_.ipc_open(id, a, &found);
      if (reply.status == 0) {
        reply.v[0] = found.piece;
        reply.v[1] = store_.find(found.piece)->card;
        reply.v[2] = found.offset;
        reply.v[3] = found.bytes;
      }
      break;
    }
    case Op::kFdExport:
      reply.status = fd_export(client, a[0]);
      break;
    case Op::kFdImport:
      reply.status = fd_import(client, &reply);
      break;
    case Op::kControl:
      reply.status = control(std::string(payload, request.payload), &text);
      break;
    case Op::kBusy:
      if (a[0] < store_.machine.cards.size())
        client->kernels[static_cast<uint32_t>(a[0])].add(now_ms(), a[1]);
      break;
    case Op::kPause:
      reply.status = share_page(client);
      break;
    case Op::kCheckpoint:
      reply.status = checkpoint(client, request, &reply);
      break;
    default:
      reply.status = 801;
  }
  reply.payload = static_cast<uint32_t>(text.size());
  client->out.append(reinterpret_cast<const char*>(&reply), sizeof reply);
  client->out += text;
}

int Server::hello(Client* client, const Request& request, const char* payload, Reply* reply,
                  std::string* text) {
  if (request.a[0] != ((static_cast<uint64_t>(kProtocolMagic) << 32) | kProtocolVersion)) {
    *text = "the running simulator is of another version";
    return 999;
  }
  client->kind = static_cast<ClientKind>(request.a[1]);
  const std::string wanted(payload, request.payload);
  // Another machine than before may be built as long as no other client uses the old one.
  const bool alone = clients_.size() == 1 && store_.pieces().empty();
  const bool other = have_machine_ && !wanted.empty() && wanted != store_.machine.text;
  if (!have_machine_ || (other && alone && client->kind != ClientKind::kControl)) {
    if (!build_machine(wanted, &store_.machine, text)) return 100;
    have_machine_ = true;
  } else if (other && client->kind != ClientKind::kControl) {
    *text = "METE_SIM=" + wanted + ", but the simulator of this METE_SIM_DIR is in use as " +
            store_.machine.text;
    return 100;
  }
  client->greeted = true;
  reply->v[0] = store_.machine.cards.size();
  return 0;
}

// The load of the present clients; temperature and power follow it.
void Server::refresh(uint32_t index, uint64_t now) {
  Card* card = &store_.machine.cards[index];
  uint32_t percent = 0;
  for (auto& [id, client] : clients_)
    if (const auto load = client.kernels.find(index); load != client.kernels.end())
      percent = std::min(percent + load->second.percent(now), 100u);
  if (card->utilisation_set >= 0) percent = static_cast<uint32_t>(card->utilisation_set);
  CardInfo& info = card->info;
  info.utilisation_pct = percent;
  info.memory_utilisation_pct = percent / 2;
  info.temperature_c = card->temperature_set >= 0 ? static_cast<uint32_t>(card->temperature_set)
                                                  : 31 + percent * 40 / 100;
  info.power_mw = card->idle_mw + (info.power_limit_mw - card->idle_mw) / 100 * percent;
  info.used = card->used;
}

// A copy or a fill, at 100 GB/s: work without kernels counts as well.
void Server::note_copy(Client* client, PieceId id, uint64_t bytes) {
  if (const Piece* piece = store_.find(id); piece != nullptr)
    client->copies[piece->card].add_done(now_ms(), 1 + bytes / 100000);
}

std::string Server::snapshot() {
  const uint64_t now = now_ms();
  // A process may have several connections (one per library); it is one process.
  std::map<pid_t, ProcessInfo> processes;
  for (auto& [id, client] : clients_) {
    if (client.kind != ClientKind::kCuda || !client.greeted) continue;
    ProcessInfo& info = processes[client.pid];
    info.pid = client.pid;
    for (auto& [card, load] : client.kernels)
      info.compute[card] = std::max(info.compute[card], load.percent_or_one(now));
    for (auto& [card, load] : client.copies)
      info.memory[card] = std::max(info.memory[card], load.percent_or_one(now));
    const auto held = store_.held().find(id);
    if (held == store_.held().end()) continue;
    for (const auto& [piece_id, count] : held->second) {
      const Piece* piece = store_.find(piece_id);
      if (Store::counted_to(*piece) != id || piece->away) continue;
      (piece->use == MemoryClass::kManaged ? info.managed : info.bytes)[piece->card] +=
          piece->bytes;
      if (piece->use == MemoryClass::kContext) ++info.contexts[piece->card];
    }
    for (const auto& [card, bytes] : store_.left_of(id)) info.bytes[card] += bytes;
  }
  std::vector<ProcessInfo> listed;
  for (const auto& [pid, info] : processes) listed.push_back(info);
  const size_t room =
      (kMaxPayload - sizeof(SnapshotHeader) - store_.machine.cards.size() * sizeof(CardInfo)) /
      sizeof(ProcessInfo);
  if (listed.size() > room) listed.resize(room);
  SnapshotHeader header{static_cast<uint32_t>(store_.machine.cards.size()),
                        static_cast<uint32_t>(listed.size()), sizeof(CardInfo),
                        sizeof(ProcessInfo)};
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  for (uint32_t index = 0; index < header.cards; ++index) {
    refresh(index, now);
    const CardInfo& info = store_.machine.cards[index].info;
    out.append(reinterpret_cast<const char*>(&info), sizeof info);
  }
  for (const ProcessInfo& info : listed) {
    out.append(reinterpret_cast<const char*>(&info), sizeof info);
  }
  return out;
}

}  // namespace simgpu
