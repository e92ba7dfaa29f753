// The collectives that Gloo has. They wait for the other ranks, and throw as Gloo does.
#pragma once
#include <plugrad/sdk/communicator.h>

#include <gloo/context.h>

#include <memory>

using Context = const std::shared_ptr<gloo::Context>;

// Returns false, without an effect, for a collective that Gloo lacks.
bool run(Context& context, const plugrad_collective& c);
// The memory to send.
inline char* input(const plugrad_collective& c) { return static_cast<char*>(const_cast<void*>(c.from)); }
