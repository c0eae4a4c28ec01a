// SmallReduce.comp: a sum or maximum over ranks of few bytes, by one kernel of
// each rank that talks to the others' through memory of the host. The module
// is in SmallReduce.inc, written by
//   glslangValidator --target-env vulkan1.3 -V -g0 -x -o SmallReduce.inc SmallReduce.comp
//
// Each rank has two boxes of the host's memory, for this round and the next. A
// place of a box is eight bytes that are written and read at once: a word of
// the data and the number of the round. Who finds the number of its round there
// has the word, so no order of memory accesses is needed beyond that. A rank
// writes a box again two rounds later: by then it has seen the round between of
// every other rank, which had begun when that one had read everything.
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

layout(local_size_x = 256) in;

layout(buffer_reference, buffer_reference_align = 4) buffer Words { uint at[]; };
layout(buffer_reference, buffer_reference_align = 8) volatile coherent buffer Boxes { uint64_t at[]; };
layout(buffer_reference, buffer_reference_align = 4) coherent buffer State {
  uint round; // the last one
  uint ended; // workgroups of this round
};
layout(buffer_reference, buffer_reference_align = 4) volatile coherent buffer Group {
  uint aborted; // by any rank, or a kernel that waited too long
};

layout(push_constant) uniform Arguments {
  Words from, to;
  Boxes boxes;
  State state;
  Group group;
  uint words, boxWords, rank, ranks;
  uint type; // 0 f32, 1 f16, 2 bf16, 3 i32
  uint isMax;
  uint patience; // looks
  uint unused;
} a;

const uint each = 4; // words of a lane

vec2 unpack(uint w) {
  if (a.type == 1)
    return unpackHalf2x16(w);
  return vec2(uintBitsToFloat(w << 16), uintBitsToFloat(w & 0xffff0000u));
}

uint toBfloat(float f) {
  uint bits = floatBitsToUint(f);
  return isnan(f) ? (bits >> 16) | 64u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

// To the nearest half, ties to even; packHalf2x16 may round as it likes.
uint toHalf(float f) {
  uint bits = floatBitsToUint(f), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return sign | 0x7e00u;
  if (magnitude >= 0x47800000u)
    return sign | 0x7c00u;
  if (magnitude < 0x38800000u) { // a multiple of 2^-24: the sum rounds
    float denormal = uintBitsToFloat(magnitude) + 0.5;
    return sign | (floatBitsToUint(denormal) - 0x3f000000u);
  }
  uint odd = (magnitude >> 13) & 1u;
  return sign | ((magnitude + 0xc8000fffu + odd) >> 13);
}

float join(float x, float y) {
  if (a.isMax == 0)
    return x + y;
  return x > y || isnan(x) ? x : y;
}

uint join(uint x, uint y) {
  return a.isMax == 0 ? x + y : uint(max(int(x), int(y)));
}

void main() {
  uint round = a.state.round + 1, first = gl_WorkGroupID.x * 256 * each + gl_LocalInvocationID.x;
  uint own[each];
  uint64_t mine = uint64_t(a.rank * 2 + (round & 1)) * a.boxWords;
  for (uint j = 0; j < each; ++j) {
    uint i = first + j * 256;
    if (i < a.words) {
      own[j] = a.from.at[i];
      a.boxes.at[uint(mine) + i] = uint64_t(own[j]) | (uint64_t(round) << 32);
    }
  }
  uint left = a.patience;
  for (uint j = 0; j < each; ++j) {
    uint i = first + j * 256;
    if (i >= a.words)
      break;
    vec2 sum = vec2(0);
    uint whole = 0;
    for (uint r = 0; r < a.ranks; ++r) {
      uint word = own[j];
      if (r != a.rank) {
        uint at = (r * 2 + (round & 1)) * a.boxWords + i;
        uint64_t seen = a.boxes.at[at];
        while (uint(seen >> 32) != round && left > 0) {
          --left;
          if ((left & 255u) == 0 && a.group.aborted != 0)
            left = 0;
          seen = a.boxes.at[at];
        }
        word = uint(seen);
      }
      if (a.type == 3) {
        whole = r == 0 ? word : join(whole, word);
      } else if (a.type == 0) {
        float f = uintBitsToFloat(word);
        sum.x = r == 0 ? f : join(sum.x, f);
      } else {
        vec2 f = unpack(word);
        sum = r == 0 ? f : vec2(join(sum.x, f.x), join(sum.y, f.y));
      }
    }
    uint result = whole;
    if (a.type == 0)
      result = floatBitsToUint(sum.x);
    else if (a.type == 1)
      result = toHalf(sum.x) | (toHalf(sum.y) << 16);
    else if (a.type == 2)
      result = toBfloat(sum.x) | (toBfloat(sum.y) << 16);
    a.to.at[i] = result;
  }
  if (left == 0)
    a.group.aborted = 1;
  barrier();
  if (gl_LocalInvocationID.x == 0) {
    memoryBarrierBuffer();
    if (atomicAdd(a.state.ended, 1) == gl_NumWorkGroups.x - 1) {
      a.state.ended = 0;
      a.state.round = round;
    }
  }
}
