// A small network on this machine: each command runs in a network namespace of its own, whose only way out is a TUN device,
// and this program carries the packets between them. So the commands share no memory and no loopback, as on several
// machines. Once the file PART exists, nothing reaches the last command any more, nor comes from it.
//   distributed_network COUNT PART COMMAND ...
// Ends with 77 where namespaces or TUN devices are not allowed, else with the largest status of a command.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {
[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(77);
}

void require(int result, const char* what) {
  if (result < 0) give_up(what);
}

std::string address_of(size_t node) { return "10.77.0." + std::to_string(node + 1); }

void bring_up(int socket, const char* device) {
  ifreq request{};
  std::strncpy(request.ifr_name, device, IFNAMSIZ - 1);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  require(ioctl(socket, SIOCSIFFLAGS, &request), device);
}

// Moves this process into a new namespace with an address. Returns the other end of its device.
int make_node(size_t node) {
  require(unshare(CLONE_NEWNET), "unshare");
  const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  require(device, "/dev/net/tun");
  ifreq request{};
  std::strncpy(request.ifr_name, "lab0", IFNAMSIZ - 1);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  require(ioctl(device, TUNSETIFF, &request), "TUNSETIFF");
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  auto* const address = reinterpret_cast<sockaddr_in*>(&request.ifr_addr);
  address->sin_family = AF_INET;
  inet_pton(AF_INET, address_of(node).c_str(), &address->sin_addr);
  require(ioctl(socket, SIOCSIFADDR, &request), "SIOCSIFADDR");
  inet_pton(AF_INET, "255.255.255.0", &address->sin_addr);
  require(ioctl(socket, SIOCSIFNETMASK, &request), "SIOCSIFNETMASK");
  bring_up(socket, "lab0");
  bring_up(socket, "lo");
  close(socket);
  return device;
}

pid_t start(size_t node, size_t count, char** command) {
  const pid_t child = fork();
  if (child) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), 1); };
  set("RANK", std::to_string(node));
  set("WORLD_SIZE", std::to_string(count));
  set("LOCAL_WORLD_SIZE", "1");
  set("PLUGRAD_STORE", "tcp://" + address_of(0) + ":29500");
  set("PLUGRAD_GLOO_OPTIONS", "address=" + address_of(node));
  execvp(command[0], command);
  std::perror(command[0]);
  _exit(127);
}

// Passes on the packets that wait in a device.
void carry(const std::vector<pollfd>& devices, size_t from, bool is_parted) {
  std::vector<unsigned char> packet(65536);
  for (;;) {
    const ssize_t bytes = read(devices[from].fd, packet.data(), packet.size());
    if (bytes <= 0) return;
    if (bytes < 20 || packet[0] >> 4 != 4) continue;  // not IPv4
    const size_t to = packet[19] - size_t{1}, last = devices.size() - 1;
    if (to >= devices.size() || (is_parted && (from == last) != (to == last))) continue;
    // A full device loses the packet; TCP sends it again.
    [[maybe_unused]] const ssize_t written = write(devices[to].fd, packet.data(), static_cast<size_t>(bytes));
  }
}
}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const auto nodes = static_cast<size_t>(std::atoi(arguments[1]));
  std::vector<pollfd> devices;
  std::vector<pid_t> children;
  for (size_t node = 0; node < nodes; ++node) {
    devices.push_back({make_node(node), POLLIN, 0});
    children.push_back(start(node, nodes, arguments + 3));
  }
  int worst = 0;
  for (size_t running = nodes; running;) {
    poll(devices.data(), devices.size(), 5);
    const bool is_parted = access(arguments[2], F_OK) == 0;
    for (size_t node = 0; node < nodes; ++node) carry(devices, node, is_parted);
    int status = 0;
    while (running && waitpid(-1, &status, WNOHANG) > 0) {
      --running;
      worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
  }
  return worst;
}
