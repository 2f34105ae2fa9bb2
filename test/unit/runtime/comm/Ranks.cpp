#include "test/unit/runtime/comm/Ranks.h"

#include "runtime/comm/threads/ThreadRanks.h"

#include <arpa/inet.h>
#include <csignal>
#include <exception>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace ds::test {
namespace {

// What a launcher would make: the memory, or the socket at which rank 0 listens.
struct Meeting {
  Wiring wiring;
  unsigned world;
  std::chrono::milliseconds timeout;
  int descriptor = -1;
  std::string address;

  Meeting(Wiring wiring, unsigned world, std::chrono::milliseconds timeout)
      : wiring(wiring), world(world), timeout(timeout) {
    if (wiring == Wiring::SharedMemory)
      descriptor = makeSharedSegment(world);
    if (wiring != Wiring::Tcp)
      return;
    descriptor = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in place = {};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(place);
    auto *general = reinterpret_cast<sockaddr *>(&place);
    if (bind(descriptor, general, length) != 0 || listen(descriptor, 64) != 0 ||
        getsockname(descriptor, general, &length) != 0)
      throw std::runtime_error("no socket for the test");
    address = "127.0.0.1:" + std::to_string(ntohs(place.sin_port));
  }
  ~Meeting() { close(descriptor); }

  std::shared_ptr<Communicator> join(unsigned rank) const {
    RankOptions options;
    options.rank = options.localRank = rank;
    options.world = world;
    options.transport = wiring == Wiring::Tcp ? TransportKind::Tcp : TransportKind::SharedMemory;
    options.host = std::string(1, static_cast<char>('a' + rank));
    options.rendezvous = address;
    options.descriptor = wiring == Wiring::SharedMemory || rank == 0 ? dup(descriptor) : -1;
    options.timeout = timeout;
    return connectRanks(options);
  }
};

std::string messageOf(const std::function<void()> &action) {
  try {
    action();
  } catch (const std::exception &error) {
    return error.what();
  }
  return "";
}

} // namespace

const char *wiringName(Wiring wiring) {
  return wiring == Wiring::Threads ? "threads" : wiring == Wiring::Tcp ? "tcp" : "shm";
}

std::vector<std::string> onThreads(Wiring wiring, unsigned world, std::chrono::milliseconds timeout,
                                   const RankBody &body) {
  ThreadRanks group(world, timeout);
  Meeting meeting(wiring, world, timeout);
  std::vector<std::string> errors(world);
  std::vector<std::thread> threads;
  for (unsigned rank = 0; rank < world; ++rank)
    threads.emplace_back([&, rank] {
      errors[rank] = messageOf([&] {
        std::shared_ptr<Communicator> communicator =
            wiring == Wiring::Threads ? std::shared_ptr<Communicator>(group.join(rank)) : meeting.join(rank);
        body(rank, *communicator);
      });
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

RankProcesses::RankProcesses(Wiring wiring, unsigned world, std::chrono::milliseconds timeout, const RankBody &body,
                             const std::function<void(unsigned)> &before) {
  Meeting meeting(wiring, world, timeout);
  for (unsigned rank = 0; rank < world; ++rank) {
    int ends[2];
    if (pipe(ends) != 0)
      throw std::runtime_error("no pipe for the test");
    pid_t process = fork();
    if (process == 0) {
      close(ends[0]);
      std::string error = messageOf([&] {
        before(rank);
        body(rank, *meeting.join(rank));
      });
      error += "\n";
      bool isWritten = write(ends[1], error.data(), error.size()) == static_cast<ssize_t>(error.size());
      _exit(isWritten ? 0 : 1);
    }
    close(ends[1]);
    processes.push_back(process);
    pipes.push_back(ends[0]);
  }
}

RankProcesses::~RankProcesses() {
  for (pid_t process : processes)
    kill(process, SIGKILL);
  for (pid_t process : processes)
    waitpid(process, nullptr, 0);
  for (int end : pipes)
    close(end);
}

std::string RankProcesses::errorOf(unsigned rank, std::chrono::seconds limit) {
  std::string text;
  for (;;) {
    pollfd entry = {pipes[rank], POLLIN, 0};
    if (poll(&entry, 1, static_cast<int>(limit.count() * 1000)) <= 0)
      return "hangs";
    char bytes[1024];
    ssize_t taken = read(pipes[rank], bytes, sizeof(bytes));
    if (taken <= 0)
      break;
    text.append(bytes, static_cast<size_t>(taken));
  }
  return text.empty() ? "killed" : text.substr(0, text.size() - 1);
}

CollectiveRequest requestOf(CollectiveOp op, float *data, int64_t count, unsigned world, float *own) {
  CollectiveRequest request;
  request.op = op;
  request.value = "grad";
  request.site = "/loss/MatMul";
  request.parts.push_back({(count + world - 1) / world, 0, count, {{data, 0, count}}, own});
  return request;
}

} // namespace ds::test
