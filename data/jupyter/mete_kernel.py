# SPDX-License-Identifier: Apache-2.0
"""A Jupyter kernel under mete. `mete kernel exec` runs this file with the Python of the notebook; it is not for use by hand.

    mete_kernel.py run CONNECTION-FILE [ARGUMENT...]   ipykernel, inside the grant
    mete_kernel.py wait CONNECTION-FILE                stands in for the kernel while its job waits for room

The stand-in binds the ports of the kernel and answers what a client needs in order not to give up: heartbeat, kernel_info,
shutdown. A cell that is run meanwhile shows what the job waits for. The stand-in keeps the request of that cell and leaves it
in a file beside the connection file; the kernel, which binds the same ports a moment later, runs it first. Clients reconnect by
themselves, as ZeroMQ does, but each of their sockets on its own: the kernel runs nothing before all of them are back, since what
it publishes to a client that has sent a cell and does not yet subscribe again is lost.

mete tells the stand-in, by lines on its standard input: "w TEXT" what the job waits for; "i" the user interrupts; "f TEXT" the
job cannot be run, and why; "g" the job has its cards. The end of the input means that mete has gone. The kernel reads
"w TEXT" (parked, and waits for room to come back) and "b" (back) from the descriptor METE_KERNEL_FD.
"""
import atexit
import json
import os
import select
import signal
import socket as sockets
import sys
import threading
import time

HELD_MOST = 64 << 20  # bytes of requests that are kept for the kernel
TOO_MUCH = "the kernel still waits for its GPU memory, and too many cells wait for it; run this cell again later"
QUIET_MS = 20  # what was on its way inside ZeroMQ has arrived; much less than the 100 ms after which a client reconnects
LEAVE_S = 1.0  # the stand-in waits this long for its clients to hang up
BACK_S = 3.0  # the kernel waits this long for its clients to reconnect before it runs what was kept
SAY_AFTER_S = 1.0  # a return that is quicker is not worth a line
HELD = ("execute_request", "comm_open", "comm_msg", "comm_close")


def held_path(connection_file):
    return connection_file + ".mete"


def can_replay():
    """Whether this version of ipykernel can be given a request that another process has received."""
    from ipykernel.kernelbase import Kernel
    return hasattr(Kernel, "schedule_dispatch") and hasattr(Kernel, "dispatch_shell")


# ---- while the job waits ------------------------------------------------------------------------


class Clients:
    """The peers of a socket: how many they are, and the descriptors of their connections."""

    def __init__(self, socket):
        import zmq
        self.here = 0
        self.connections = set()
        self.socket = socket
        self.monitor = socket.get_monitor_socket(zmq.EVENT_ACCEPTED | zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)

    def look(self):
        import zmq
        from zmq.utils.monitor import parse_monitor_message
        while True:
            try:
                event = parse_monitor_message(self.monitor.recv_multipart(zmq.NOBLOCK))
            except zmq.Again:
                return self.here
            if event["event"] == zmq.EVENT_ACCEPTED:
                self.connections.add(int(event["value"]))
            elif event["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self.here += 1
            else:
                self.here -= 1
                self.connections.discard(int(event["value"]))

    def hang_up(self):
        """Tells every peer that it will hear nothing more. It closes its end, and all that it has sent by then arrives here."""
        for connection in self.connections:
            try:
                with sockets.socket(fileno=os.dup(connection)) as end:
                    end.shutdown(sockets.SHUT_WR)
            except OSError:  # has just gone
                pass

    def close(self):
        """An open monitor keeps its context from ending."""
        if not self.monitor.closed:
            self.socket.disable_monitor()
            self.monitor.close(0)


class StandIn:
    def __init__(self, connection_file):
        import zmq
        from jupyter_client.session import Session
        self.zmq = zmq
        self.connection_file = connection_file
        with open(connection_file, encoding="utf-8") as file:
            info = json.load(file)
        self.session = Session(key=info["key"].encode(), signature_scheme=info["signature_scheme"])
        self.context = zmq.Context()
        self.context.linger = 1000
        place = f"{info['transport']}://{info['ip']}" + (":" if info["transport"] == "tcp" else "-")
        self.sockets = {}
        for name, kind in (("shell", zmq.ROUTER), ("control", zmq.ROUTER), ("stdin", zmq.ROUTER), ("hb", zmq.ROUTER), ("iopub", zmq.PUB)):
            socket = self.sockets[name] = self.context.socket(kind)
            if kind == zmq.ROUTER:
                socket.router_handover = 1
        # Watched before a client can connect.
        self.clients = {name: Clients(self.sockets[name]) for name in ("shell", "iopub")}
        for name, socket in self.sockets.items():
            socket.bind(place + str(info[name + "_port"]))
        self.replays = can_replay()
        self.waits_for = ""
        self.failed = ""
        self.held = []  # (frames, message)
        self.held_bytes = 0
        self.input = b""

    def serve(self):
        poller = self.zmq.Poller()
        poller.register(0, self.zmq.POLLIN)
        for name in ("shell", "control", "stdin", "hb"):
            poller.register(self.sockets[name], self.zmq.POLLIN)
        for clients in self.clients.values():
            poller.register(clients.monitor, self.zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            for clients in self.clients.values():
                clients.look()
            if self.sockets["hb"] in ready:
                self.sockets["hb"].send_multipart(self.sockets["hb"].recv_multipart())
            if self.sockets["stdin"] in ready:
                self.sockets["stdin"].recv_multipart()
            for name in ("control", "shell"):
                if self.sockets[name] in ready and not self.answer(name, self.sockets[name].recv_multipart()):
                    return 0
            if 0 in ready:
                done = self.hear()
                if done is not None:
                    return done

    # ---- clients ----

    def publish(self, kind, content, parent):
        self.session.send(self.sockets["iopub"], kind, content, parent=parent, ident=kind.encode())

    def reply(self, socket, message, idents, content):
        if self.sockets[socket].closed:  # the hand-over failed; what is published still arrives
            return
        kind = message["header"]["msg_type"].replace("_request", "_reply")
        self.session.send(self.sockets[socket], kind, content, parent=message, ident=idents)

    def answer(self, socket, frames):
        """False: the client shuts the kernel down."""
        idents, parts = self.session.feed_identities(frames)
        try:
            message = self.session.deserialize(parts)
        except Exception:  # a wrong signature, or not a message at all
            return True
        kind = message["header"]["msg_type"]
        if kind in HELD:
            self.keep(socket, frames, idents, message)
            return True
        self.publish("status", {"execution_state": "busy"}, message)
        if kind == "shutdown_request":
            content = {"status": "ok", "restart": message["content"].get("restart", False)}
            self.reply(socket, message, idents, content)
            self.publish("shutdown_reply", content, message)
            self.close()
            return False
        content = self.answers(kind, message["content"])
        if content is not None:
            self.reply(socket, message, idents, content)
        self.publish("status", {"execution_state": "busy" if self.held else "idle"}, message)
        return True

    def answers(self, kind, asked):
        at = asked.get("cursor_pos", 0)
        return {
            "kernel_info_request": self.kernel_info(),
            "complete_request": {"status": "ok", "matches": [], "cursor_start": at, "cursor_end": at, "metadata": {}},
            "inspect_request": {"status": "ok", "found": False, "data": {}, "metadata": {}},
            "is_complete_request": {"status": "unknown"},
            "history_request": {"status": "ok", "history": []},
            "comm_info_request": {"status": "ok", "comms": {}},
            "interrupt_request": {"status": "ok"},
        }.get(kind)

    def kernel_info(self):
        import platform
        return {
            "status": "ok", "protocol_version": "5.3", "implementation": "mete", "implementation_version": "1",
            "language_info": {"name": "python", "version": platform.python_version(), "mimetype": "text/x-python", "file_extension": ".py",
                              "pygments_lexer": "ipython3", "codemirror_mode": {"name": "ipython", "version": 3}, "nbconvert_exporter": "python"},
            "banner": self.text(), "help_links": [],
        }

    def text(self):
        if self.failed:
            return f"mete: {self.failed}\n"
        return f"mete: this kernel waits for {self.waits_for or 'room on a card'}; the cell runs when it has it\n"

    def keep(self, socket, frames, idents, message):
        is_cell = message["header"]["msg_type"] == "execute_request"
        size = sum(len(frame) for frame in frames)
        why = self.failed or ("" if self.replays and self.held_bytes + size <= HELD_MOST else TOO_MUCH)
        if why:
            if is_cell:
                self.refuse(socket, idents, message, "mete", why)
            return
        self.held.append((frames, message))
        self.held_bytes += size
        if is_cell:
            self.publish("status", {"execution_state": "busy"}, message)
            self.show(message)

    def show(self, message, again=False):
        if message["header"]["msg_type"] != "execute_request" or message["content"].get("silent", False):
            return
        if again:
            self.publish("clear_output", {"wait": True}, message)
        self.publish("stream", {"name": "stderr", "text": self.text()}, message)

    def refuse(self, socket, idents, message, name, why):
        error = {"ename": name, "evalue": why, "traceback": [f"{name}: {why}" if why else name]}
        self.publish("status", {"execution_state": "busy"}, message)
        self.publish("error", error, message)
        self.reply(socket, message, idents, {"status": "error", "execution_count": 0, "user_expressions": {}, "payload": [], **error})
        self.publish("status", {"execution_state": "idle"}, message)

    def refuse_held(self, name, why):
        for frames, message in self.held:
            if message["header"]["msg_type"] == "execute_request":
                idents, _ = self.session.feed_identities(frames)
                self.publish("clear_output", {"wait": False}, message)
                self.refuse("shell", idents, message, name, why)
        self.held, self.held_bytes = [], 0

    # ---- mete ----

    def hear(self):
        """None: goes on; else the exit code."""
        got = os.read(0, 1 << 16)
        if not got:
            return 1
        self.input += got
        *lines, self.input = self.input.split(b"\n")
        for line in lines:
            kind, text = line[:1], line[2:].decode(errors="replace")
            if kind == b"w" and text != self.waits_for:
                self.waits_for = text
                for _, message in self.held:
                    self.show(message, again=True)
            elif kind == b"i":
                self.refuse_held("KeyboardInterrupt", "")
            elif kind == b"f":
                self.failed = text
                self.refuse_held("mete", text)
            elif kind == b"g":
                self.hand_over()
                return 0
        return None

    def hand_over(self):
        for _, message in self.held:
            if message["header"]["msg_type"] == "execute_request":
                self.publish("clear_output", {"wait": False}, message)
        clients = {name: clients.look() for name, clients in self.clients.items()}
        if self.replays:
            self.take_the_last()
            self.leave_held(clients)
        else:
            while self.sockets["shell"].poll(0):
                self.answer("shell", self.sockets["shell"].recv_multipart())
        self.close()

    def take_the_last(self):
        """Requests that come while we leave are the kernel's too. ZeroMQ forgets what it has received for a socket that is closed, so the
        clients hang up first. What they send afterwards stays with them until they reconnect, which they try after 100 ms."""
        shell, clients = self.sockets["shell"], self.clients["shell"]
        self.take_for_kernel(shell, time.monotonic() + QUIET_MS / 1000)  # our last replies leave meanwhile
        limit = time.monotonic() + LEAVE_S
        while True:
            clients.look()
            clients.hang_up()
            self.take_for_kernel(shell, limit)
            clients.look()
            if not clients.connections or time.monotonic() >= limit:
                break
        clients.close()
        shell.close(0)

    def take_for_kernel(self, shell, limit):
        while shell.poll(QUIET_MS) and time.monotonic() < limit:
            frames = shell.recv_multipart()
            try:
                self.held.append((frames, self.session.deserialize(self.session.feed_identities(frames)[1])))
            except Exception:  # a wrong signature, or not a message at all
                pass

    def leave_held(self, clients):
        held = {"clients": clients,
                "requests": [[frame.hex() for frame in frames] for frames, _ in self.held]}
        path = held_path(self.connection_file)
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w", encoding="utf-8") as file:
                json.dump(held, file)
        except OSError as error:
            self.refuse_held("mete", f"the cell could not be kept for the kernel: {error}; run it again")

    def close(self):
        for clients in self.clients.values():
            clients.close()
        for socket in self.sockets.values():
            socket.close(1000)
        self.context.term()


def wait(connection_file):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # mete passes an interrupt on
    return StandIn(connection_file).serve()


# ---- the kernel ---------------------------------------------------------------------------------


def take_held(connection_file):
    """What the stand-in kept: the requests, and how many clients it had; None: there was no stand-in."""
    path = held_path(connection_file)
    try:
        with open(path, encoding="utf-8") as file:
            os.unlink(path)
            return json.load(file)
    except (OSError, ValueError):
        return None


def listen(descriptor):
    """Says in the notebook why a cell does not go on: the kernel was parked, and there is no room for its return."""
    text, since, said = "", 0.0, False
    pending = b""
    while True:
        if not select.select([descriptor], [], [], 0.25 if text and not said else None)[0]:
            if time.monotonic() - since >= SAY_AFTER_S:
                said = True
                print(f"mete: this kernel was parked, and waits for {text}", file=sys.stderr, flush=True)
            continue
        got = os.read(descriptor, 1 << 16)
        if not got:
            return
        *lines, pending = (pending + got).split(b"\n")
        for line in lines:
            if line[:1] == b"w":
                if not text:
                    since = time.monotonic()
                text = line[2:].decode(errors="replace")
            else:
                if said:
                    print("mete: the kernel is back", file=sys.stderr, flush=True)
                text, said = "", False


def start_listening():
    descriptor = int(os.environ.pop("METE_KERNEL_FD", "-1"))
    if descriptor < 0:
        return
    os.set_inheritable(descriptor, False)
    threading.Thread(target=listen, args=(descriptor,), name="mete", daemon=True).start()


def run(connection_file, arguments):
    # As ipykernel_launcher does: modules of the current folder must not replace ours while we import.
    sys.path[:] = [path for path in sys.path if path not in ("", os.path.dirname(os.path.abspath(__file__)))]
    sys.argv = [sys.argv[0], "-f", connection_file, *arguments]
    import zmq
    from ipykernel.kernelapp import IPKernelApp
    start_listening()
    held = take_held(connection_file)
    if held is None:
        IPKernelApp.launch_instance()
        return 0

    class App(IPKernelApp):
        mete_clients = None

        def _bind_socket(self, socket, port):
            # Before a client can connect. The first two of their kind are shell and iopub.
            self.mete_clients = self.mete_clients or {}
            name = "shell" if socket.socket_type == zmq.ROUTER else "iopub"
            if name not in self.mete_clients:
                self.mete_clients[name] = Clients(socket)
            return super()._bind_socket(socket, port)

    app = App.instance()
    app.initialize()
    replay(app, held)
    app.start()
    return 0


def replay(app, held):
    import asyncio

    import zmq
    from tornado.ioloop import IOLoop

    clients = app.mete_clients or {}

    def forget():
        for each in clients.values():
            each.close()

    def are_back():
        # ipykernel's debugger is a client of its own shell.
        own = {"shell": 1 if getattr(app, "debug_shell_socket", None) is not None else 0}
        return all(clients[name].look() >= held["clients"].get(name, 0) + own.get(name, 0) for name in clients)

    async def until_clients_are_back():
        limit = time.monotonic() + BACK_S
        while not are_back() and time.monotonic() < limit:
            await asyncio.sleep(0.02)
        forget()
        await asyncio.sleep(0.1)  # a subscription to our output follows the connection

    def schedule():
        kernel = app.kernel
        kernel.schedule_dispatch(until_clients_are_back)
        for request in held["requests"]:
            kernel.schedule_dispatch(kernel.dispatch_shell, [zmq.Frame(bytes.fromhex(frame)) for frame in request])

    atexit.register(forget)  # before the application's own, which waits for its context
    IOLoop.current().add_callback(schedule)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "wait":
        sys.exit(wait(sys.argv[2]))
    if len(sys.argv) > 2 and sys.argv[1] == "run":
        sys.exit(run(sys.argv[2], sys.argv[3:]))
    sys.exit("mete_kernel.py: run it by mete kernel exec")
