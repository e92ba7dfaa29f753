// Connections of Gloo to all other ranks, whose waits another thread can end.
//
// Gloo's own ways to end a wait, a time-out and a closed connection, miss a message that was being written when the
// connection broke: its send then waits until its time-out.
#pragma once
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/device.h>

#include <chrono>
#include <memory>

class Waits;

class Connections final : public gloo::rendezvous::Context {
 public:
  // Connects to all other ranks, which meet in the store. timeout: of each wait. Throws as Gloo does.
  Connections(int rank, int size, gloo::rendezvous::Store& store, std::shared_ptr<gloo::transport::Device> device,
              std::chrono::milliseconds timeout);
  // Ends all waits, also later ones, by an exception. [any]
  void abort();

 private:
  std::shared_ptr<Waits> waits_;
};
