// The contract between a core ("the host") and a communicator: a plugin that moves bytes between processes by an existing
// engine (MPI, Gloo, ..). C11 and C++20. A communicator is a shared object with the name libplugrad-communicator-NAME.so. It
// exports the symbol plugrad_communicator_v0, and nothing else.
//
// Threads     [any]         from any thread, at any time.
//             [one-thread]  from the communication thread: one and the same thread of the host for all groups of the
//                           communicator in this process. It calls open first. So an engine needs no more than
//                           MPI_THREAD_FUNNELED, and the program's threads never run the engine.
// Order       All ranks of a group start the same collectives in the same order. The host numbers them 1, 2, ...; sends and
//             receives are numbered for each pair of ranks.
// Fingerprint Ranks that start different collectives are in error. An engine that tags its messages uses the collective's
//             fingerprint, so that messages of different collectives never meet, and the ranks time out.
// Declining   start returns PLUGRAD_UNSUPPORTED, before any effect and on all ranks alike, for a collective that the
//             engine lacks. The host then composes it of others: reductions of ALL_TO_ALL, its own sums and ALL_GATHER;
//             everything else of SEND and RECV. A communicator must have SEND and RECV.
// Failures    Nothing waits for ever. After a status other than OK, UNSUPPORTED and INVALID the group is broken: the host
//             calls abort, then close, and starts nothing on it.
// Ownership, open values, errors, lifetime: as abi.h says. A communicator's strings and tables live as long as the process.
#pragma once
#include <plugrad/sdk/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

// The structs of this header: their layout is part of the agreement of host and communicator. communicator_layout_hash in
// communicator_layout.hpp computes it.
#define PLUGRAD_COMMUNICATOR_LAYOUT 0x78f5233be6e71929ull

enum {                    // statuses of communicators, beside those of abi.h
  PLUGRAD_PEER_LOST = 8,  // a rank ended, or a connection to a rank broke
  PLUGRAD_TIMED_OUT = 9,  // a rank did not come within the time
};

enum {                              // kinds of collectives
  PLUGRAD_COLL_BARRIER = 1,         // no memory
  PLUGRAD_COLL_BROADCAST = 2,       // to: count elements, read by rank `peer` and written by the others
  PLUGRAD_COLL_ALL_REDUCE = 3,      // from -> to: count elements
  PLUGRAD_COLL_REDUCE_SCATTER = 4,  // from: size * count elements; to: the reduced block of this rank, count elements
  PLUGRAD_COLL_ALL_GATHER = 5,      // from: count elements; to: size * count, in the order of ranks
  PLUGRAD_COLL_ALL_TO_ALL = 6,      // from: block r is for rank r; to: block r is of rank r; count elements, or counts
  PLUGRAD_COLL_SEND = 7,            // from: count elements, to rank `peer`
  PLUGRAD_COLL_RECV = 8,            // to: count elements, of rank `peer`
};
enum {  // how
  PLUGRAD_REDUCE_SUM = 1,
  PLUGRAD_REDUCE_MIN = 2,
  PLUGRAD_REDUCE_MAX = 3,
  PLUGRAD_REDUCE_PRODUCT = 4,
  PLUGRAD_REDUCE_AVERAGE = 5,  // of floating dtypes, only with AVERAGES
};

enum {                           // capabilities
  PLUGRAD_COMM_LAUNCHES = 1,     // a launcher of the engine tells rank and size; open needs no store
  PLUGRAD_COMM_NAMES_RANKS = 2,  // failure may say which rank is lost
  PLUGRAD_COMM_AVERAGES = 4,     // the engine divides sums by the number of ranks; else the host does
};

typedef struct plugrad_group plugrad_group;  // the communicator owns it, from open or split to close
typedef struct plugrad_work plugrad_work;    // the communicator owns it, from start to the test or wait that ends it

// The host's store: a few small values by which ranks find each other. It carries no data of programs.
typedef struct plugrad_store {
  uint32_t struct_size;
  uint32_t reserved;  // 0
  void* context;
  // Sets a value; a key's first value stays. Returns OK also where the key has a value. [any]
  plugrad_status (*set)(const struct plugrad_store* store, const char* key, const void* bytes, uint64_t size);
  // Waits until the key is set, at most this long; else TIMED_OUT. Stores the value's size, and copies at most capacity
  // bytes. [any]
  plugrad_status (*get)(const struct plugrad_store* store, const char* key, void* bytes, uint64_t capacity, uint64_t* size,
                        uint64_t milliseconds);
} plugrad_store;

typedef struct plugrad_group_options {
  uint32_t struct_size;
  uint32_t generation;         // of the job, counted by restarts: messages of two generations never meet
  int32_t rank, size;          // -1: as the engine's launcher says (LAUNCHES)
  int32_t local_size;          // the number of ranks on this machine; -1: unknown
  uint32_t reserved;           // 0
  const plugrad_store* store;  // null only with LAUNCHES; lives as long as the group
  uint64_t timeout;            // milliseconds, of open and of each collective
  plugrad_options options;     // the user's: keys of the communicator, such as "interface"
} plugrad_group_options;

// The memory belongs to the collective until its work ends. from and to do not overlap; of ALL_REDUCE and BROADCAST they may
// be equal. Without a stream it is host memory.
//
// With a stream it is memory of a device of the table's dlpack_type, and the stream is a native stream of this device
// (native.h). The collective starts after the work that was submitted to the stream before start, and work submitted to the
// stream after start has returned waits for the collective; only the device waits. Ranks may differ in where their memory
// is. An engine takes device memory for all kinds but BARRIER, SEND and RECV, counts included, and for reductions in f16,
// bf16, f32, f64, i8, u8, i32 and i64. Everything else the host copies to host memory first.
typedef struct plugrad_collective {
  uint32_t struct_size;
  uint32_t kind;
  uint64_t number;       // of this collective in its group
  uint64_t fingerprint;  // of number, kind, dtype, how and count; of the pair's number for SEND and RECV
  const void* from;
  void* to;
  uint64_t count;          // elements, see the kinds; 0 is allowed
  const uint64_t* counts;  // ALL_TO_ALL: null, or elements for each rank, then elements of each rank; else null
  uint32_t dtype;          // PLUGRAD_F32, ...
  uint32_t item;           // bytes of an element
  uint32_t how;            // PLUGRAD_REDUCE_SUM, ..., of reductions; else 0
  int32_t peer;            // see the kinds; else -1
  void* stream;            // null: host memory
  int32_t device;          // with a stream: the device's plugrad_device_info::dlpack_index; else -1
  uint32_t reserved;       // 0
} plugrad_collective;

typedef struct plugrad_group_failure {
  uint32_t struct_size;  // set by the host
  int32_t rank;          // the lost rank, or -1: unknown
  char why[240];         // the engine's words; UTF-8, ends in 0
  // Null, or a byte for each rank, of the host. Then the communicator asks each rank by messages that do not need the broken
  // group, and sets the bytes of ranks that do not answer within 2 s. All ranks ask at about the same time. A communicator
  // that cannot ask leaves the bytes as they are.
  uint8_t* silent;
} plugrad_group_failure;

typedef struct plugrad_communicator {
  uint32_t struct_size;
  uint32_t capabilities;
  uint64_t layout;      // PLUGRAD_COMMUNICATOR_LAYOUT
  const char* name;     // "mpi": [a-z][a-z0-9_-]*
  const char* version;  // of the engine, for people: "Open MPI 4.1.4"

  // Stores rank and size if a launcher of the engine started this process, else -1 and -1. Reads only the environment.
  // [any]
  plugrad_status (*launched)(const plugrad_host* host, int32_t* rank, int32_t* size);
  // Joins the group of all ranks; stores this process's rank and the group's size. Waits for the others, at most the
  // timeout. [one-thread]
  plugrad_status (*open)(const plugrad_host* host, const plugrad_group_options* options, plugrad_group** group,
                         int32_t* rank, int32_t* size);
  // All ranks call it. Those with the same color become a group, in the order of their ranks; color -1: no group, stores
  // null. number: of this call in its group. [one-thread]
  plugrad_status (*split)(plugrad_group* group, int32_t color, uint64_t number, plugrad_group** part, int32_t* rank,
                          int32_t* size);
  // Starts a collective. May wait for other ranks, at most the group's timeout. [one-thread]
  plugrad_status (*start)(plugrad_group* group, const plugrad_collective* collective, plugrad_work** work);
  // Stores whether the work ended. Never waits. A work that ended, in whatever way, no longer exists. May be null: then the
  // host calls wait when the program waits for the work, and starts other works meanwhile. [one-thread]
  plugrad_status (*test)(plugrad_work* work, uint32_t* ended);
  // Waits until the work ends; after this long the group is broken, with TIMED_OUT. The work no longer exists. May be null
  // where test is not. [one-thread]
  plugrad_status (*wait)(plugrad_work* work, uint64_t milliseconds);
  // Fills in what is known about a broken group. [any]
  plugrad_status (*failure)(plugrad_group* group, plugrad_group_failure* failure);
  // Breaks the group: its calls in progress end soon, here at once and on other ranks within the timeout. [any]
  void (*abort)(plugrad_group* group);
  // Ends a group. Waits for the other ranks only if the group is whole. [one-thread]
  void (*close)(plugrad_group* group);
  // The process ends, and no group is open any more. May wait for the other ranks, unless a group was broken. May be null.
  // [one-thread]
  void (*finish)(void);
  // Devices whose memory the engine takes beside host memory: a plugrad_device_info::dlpack_type, such as 2 for CUDA; 0:
  // none. Needs test.
  int32_t dlpack_type;
  uint32_t reserved;  // 0
} plugrad_communicator;

// Returns the table; opens no connection and starts no thread.
typedef const plugrad_communicator* (*plugrad_communicator_entry)(const plugrad_host* host);
PLUGRAD_EXPORT const plugrad_communicator* plugrad_communicator_v0(const plugrad_host* host);

#ifdef __cplusplus
}  // extern "C"
#endif
