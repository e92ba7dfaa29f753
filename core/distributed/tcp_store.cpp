// A store in rank 0's process, which the other ranks reach by TCP. The port may be in use, by another job or by the
// launcher's own store, so rank 0 takes the first free port from there on, and the other ranks look for its greeting.
//
// Protocol: the server greets with "plugrad-store 1 JOB". The client says "RANK\n", and the server "yes\n", or "no\n" if it
// has that rank already. Then the client sends requests "s|r|g KEYSIZE SIZE\n" and as many bytes; the server answers
// "SIZE\n" and the value, or "-1\n".
#include <core/distributed/store.hpp>

#include <plugrad/runtime/error.hpp>
#include <plugrad/sdk/threads.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

namespace plugrad::distributed {
namespace {
namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int kPorts = 16;                       // how many ports rank 0 tries
constexpr size_t kLine = 256, kValue = 1 << 20;  // the most bytes of a line, and of a key with its value
constexpr seconds kAnswer{5};                    // the longest wait for the server, which answers without delay

std::string greeting(const Launch& launch) {
  return "plugrad-store 1 " + launch.job + "#" + std::to_string(launch.generation);
}

class Server {
 public:
  Server(int port, const Launch& launch) : greeting_(greeting(launch) + "\n"), acceptor_(context_) {
    for (int i = 0; i < (port ? kPorts : 1) && !acceptor_.is_open(); ++i) listen(port + i);
    if (!acceptor_.is_open())
      throw Error(Code::peer_lost, "[init_process_group] the ports " + std::to_string(port) + " to " +
                                       std::to_string(port + kPorts - 1) + " are in use: choose another MASTER_PORT");
    asio::co_spawn(context_, accept(), asio::detached);
    const BlockedSignals blocked;
    thread_ = std::thread([this] { context_.run(); });
  }
  ~Server() {
    context_.stop();
    thread_.join();
  }
  Server(const Server&) = delete;
  int port() const { return acceptor_.local_endpoint().port(); }
  // How many ranks are connected.
  size_t count() const { return count_; }

 private:
  void listen(int port) {
    boost::system::error_code error;
    acceptor_.open(tcp::v4());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    if (!acceptor_.bind({tcp::v4(), static_cast<uint16_t>(port)}, error))
      acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) acceptor_.close();
  }
  asio::awaitable<void> accept() {
    for (;;) asio::co_spawn(context_, serve(co_await acceptor_.async_accept(asio::use_awaitable)), asio::detached);
  }
  // Ends by an exception when the client leaves, or sends something else.
  asio::awaitable<void> serve(tcp::socket socket) {
    socket.set_option(tcp::no_delay(true));
    std::string text;
    co_await send(socket, greeting_);
    const std::string rank = co_await line(socket, text);
    const bool is_new = ranks_.insert(rank).second;
    // A rank that did not wait for the answer asks again.
    const std::shared_ptr<void> leaving(nullptr, [&](void*) {
      if (is_new) ranks_.erase(rank);
      count_ = ranks_.size();
    });
    count_ = ranks_.size();
    co_await send(socket, is_new ? "yes\n" : "no\n");
    while (is_new) {
      std::istringstream request(co_await line(socket, text));
      char what = 0;
      size_t key_size = 0, size = 0;
      if (!(request >> what >> key_size >> size) || key_size + size > kValue) co_return;
      if (text.size() < key_size + size)
        co_await asio::async_read(socket, asio::dynamic_buffer(text), asio::transfer_exactly(key_size + size - text.size()),
                                  asio::use_awaitable);
      const std::string key = text.substr(0, key_size), value = text.substr(key_size, size);
      text.erase(0, key_size + size);
      co_await send(socket, answer(what, key, value));
    }
  }
  static asio::awaitable<void> send(tcp::socket& socket, std::string text) {
    co_await asio::async_write(socket, asio::buffer(text), asio::use_awaitable);
  }
  static asio::awaitable<std::string> line(tcp::socket& socket, std::string& text) {
    const size_t size =
        co_await asio::async_read_until(socket, asio::dynamic_buffer(text, kLine), '\n', asio::use_awaitable);
    const std::string result = text.substr(0, size - 1);
    text.erase(0, size);
    co_return result;
  }
  std::string answer(char what, const std::string& key, const std::string& value) {
    if (what == 's') values_.emplace(key, value);
    if (what == 'r') values_[key] = value;
    const auto found = values_.find(key);
    if (what != 'g' || found == values_.end()) return what == 'g' ? "-1\n" : "0\n";
    return std::to_string(found->second.size()) + "\n" + found->second;
  }

  std::string greeting_;
  std::map<std::string, std::string> values_;
  std::set<std::string> ranks_;
  std::atomic<size_t> count_{0};
  asio::io_context context_;  // it ends what still serves, which uses the members before
  tcp::acceptor acceptor_;
  std::thread thread_;
};

class TcpStore final : public Store {
 public:
  TcpStore(const std::string& host, int port, const Launch& launch) : host_(host) {
    if (launch.rank == 0) server_ = std::make_unique<Server>(port, launch);
    const auto end = steady_clock::now() + launch.timeout;
    const int first = server_ ? server_->port() : port, count = server_ ? 1 : kPorts;
    do {
      for (int i = 0; i < count; ++i)
        if (connect(server_ ? "127.0.0.1" : host, first + i, launch)) return;
      std::this_thread::sleep_for(milliseconds(20));
    } while (steady_clock::now() < end);
    throw Error(Code::peer_lost, "[init_process_group] rank 0 does not answer at " + host + ", ports " +
                                     std::to_string(port) + " to " + std::to_string(port + kPorts - 1) + ", within " +
                                     std::to_string(launch.timeout.count() / 1000) +
                                     " s: is it started, and are MASTER_ADDR "
                                     "and MASTER_PORT the same for all ranks?");
  }
  void set(const std::string& key, const std::string& value) override { ask('s', key, value); }
  void replace(const std::string& key, const std::string& value) override { ask('r', key, value); }
  std::optional<std::string> get(const std::string& key) override { return ask('g', key, ""); }
  int port() const override { return server_ ? server_->port() : 0; }
  void wait_for_others(milliseconds most) override {
    const auto end = steady_clock::now() + most;
    while (server_ && server_->count() > 1 && steady_clock::now() < end) std::this_thread::sleep_for(milliseconds(20));
  }

 private:
  // Whether the store of this job listens there, and takes this rank. Other servers may say nothing, or something else.
  bool connect(const std::string& host, int port, const Launch& launch) {
    stream_ = tcp::iostream();
    stream_.expires_after(milliseconds(500));
    stream_.connect(host, std::to_string(port));
    std::string line;
    if (!std::getline(stream_, line) || line != greeting(launch)) return false;
    stream_ << launch.rank << std::endl;
    if (!std::getline(stream_, line) || line != "yes") return false;
    stream_.socket().set_option(tcp::no_delay(true));
    return true;
  }
  std::optional<std::string> ask(char what, const std::string& key, const std::string& value) {
    const std::lock_guard lock(mutex_);
    stream_.expires_after(kAnswer);
    stream_ << what << ' ' << key.size() << ' ' << value.size() << '\n' << key << value << std::flush;
    std::string line;
    if (!std::getline(stream_, line)) throw_lost();
    const int size = std::atoi(line.c_str());
    if (size < 0) return {};
    std::string result(static_cast<size_t>(size), '\0');
    if (!stream_.read(result.data(), size)) throw_lost();
    return result;
  }
  [[noreturn]] void throw_lost() const {
    throw Error(Code::peer_lost, "[distributed] the store in rank 0's process on " + host_ + " cannot be reached (" +
                                     stream_.error().message() + "): rank 0 ended, or this rank is cut off");
  }

  std::string host_;
  std::mutex mutex_;
  std::unique_ptr<Server> server_;  // of rank 0
  tcp::iostream stream_;
};
}  // namespace

std::unique_ptr<Store> open_tcp_store(const std::string& host, int port, const Launch& launch) {
  return std::make_unique<TcpStore>(host, port, launch);
}

}  // namespace plugrad::distributed
