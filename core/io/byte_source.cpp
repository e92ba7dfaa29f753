#include <core/io/byte_source.hpp>

#include <plugrad/runtime/error.hpp>

#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace plugrad::io {
namespace {

constexpr size_t kChunk = size_t{1} << 18;

bool is_gzip(const std::vector<uint8_t>& bytes, size_t at) {
  return bytes.size() >= at + 2 && bytes[at] == 0x1f && bytes[at + 1] == 0x8b;
}

}  // namespace

struct ByteSource::Inflate {
  z_stream stream{};
  bool at_end = false;  // of a gzip member; a file may have several

  Inflate() {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw Error(Code::out_of_memory, "[inflate] there is no memory for zlib");
  }
  ~Inflate() { inflateEnd(&stream); }
};

ByteSource::ByteSource(const std::string& path, Packing packing, const std::string& hint) : file_(path, hint) {
  refill();
  if (packing == Packing::gzip_or_plain && is_gzip(packed_, 0)) inflate_ = std::make_unique<Inflate>();
}

ByteSource::~ByteSource() = default;

void ByteSource::refill() {
  packed_.resize(kChunk);
  next_ = 0;
  packed_.resize(file_.read_some(offset_, packed_.data(), kChunk));
  offset_ += packed_.size();
}

size_t ByteSource::read(void* bytes, size_t count) {
  uint8_t* out = static_cast<uint8_t*>(bytes);
  size_t done = 0;
  while (done < count) {
    if (next_ == packed_.size()) refill();
    if (packed_.empty()) break;
    if (inflate_) {
      done += inflate(out + done, count - done);
    } else {
      const size_t part = std::min(count - done, packed_.size() - next_);
      std::memcpy(out + done, packed_.data() + next_, part);
      next_ += part;
      done += part;
    }
  }
  if (done < count && inflate_ && !inflate_->at_end) fail("is cut short: its gzip stream has no end");
  return done;
}

// gzip allows several members in succession. Further bytes after a member are an error.
void ByteSource::next_member() {
  if (packed_.size() - next_ < 2) {
    std::vector<uint8_t> kept(packed_.begin() + static_cast<ptrdiff_t>(next_), packed_.end());
    refill();
    packed_.insert(packed_.begin(), kept.begin(), kept.end());
  }
  if (!is_gzip(packed_, next_)) fail("has extra bytes after its gzip stream");
  inflateReset(&inflate_->stream);
  inflate_->at_end = false;
}

size_t ByteSource::inflate(uint8_t* bytes, size_t count) {
  if (inflate_->at_end) next_member();
  z_stream& stream = inflate_->stream;
  const size_t part = std::min(count, kChunk);
  stream.next_in = packed_.data() + next_;
  stream.avail_in = static_cast<uInt>(packed_.size() - next_);
  stream.next_out = bytes;
  stream.avail_out = static_cast<uInt>(part);
  const int status = ::inflate(&stream, Z_NO_FLUSH);
  if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
    fail(std::string("is damaged: gzip says ") + (stream.msg ? stream.msg : "that the data is wrong"));
  }
  next_ = packed_.size() - stream.avail_in;
  inflate_->at_end = status == Z_STREAM_END;
  return part - stream.avail_out;
}

}  // namespace plugrad::io
