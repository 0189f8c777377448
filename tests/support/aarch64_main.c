/* Plays the games of a kernel: reads sizes and memory from one file, writes carry and handed-out arrays to another.

   The first file has int64 numbers: groups, lanes, until, stops, shared tables, handed-out arrays; bytes of
   parameters, carry, keys, workspace, of every shared table and of every handed-out array; then the stops; then the
   bytes of parameters, keys and shared tables. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void begin(void *params, void *carry, void *shared, void *work, int64_t first, int64_t last);
void play(void *params, void *carry, void *keys, void *shared, void *work, void *outs, void *traced, int64_t first,
          int64_t last, int64_t lanes, int64_t t, void *stops, int64_t num_stops, int64_t until);

static void die(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(2);
}

static void *zeros(int64_t bytes) {
  void *memory = aligned_alloc(64, (bytes / 64 + 1) * 64);
  if (!memory) die("no memory");
  for (int64_t n = 0; n < bytes; n++) ((char *)memory)[n] = 0;
  return memory;
}

static void *filled(FILE *file, int64_t bytes) {
  void *memory = zeros(bytes);
  if (fread(memory, 1, bytes, file) != (size_t)bytes) die("the file is too short");
  return memory;
}

int main(int count, char **names) {
  if (count != 3) die("names of two files are needed");
  FILE *in = fopen(names[1], "rb"), *out = fopen(names[2], "wb");
  if (!in || !out) die("a file cannot be opened");
  int64_t *head = filled(in, 10 * 8);
  int64_t groups = head[0], lanes = head[1], until = head[2], num_stops = head[3], num_shared = head[4];
  int64_t num_outs = head[5];
  int64_t *shared_bytes = filled(in, 8 * num_shared), *out_bytes = filled(in, 8 * num_outs);
  int64_t *stops = filled(in, 8 * num_stops);
  void *params = filled(in, head[6]), *keys = filled(in, head[8]);
  void *carry = zeros(head[7]), *work = zeros(head[9]);
  void **shared = zeros(8 * num_shared), **outs = zeros(8 * num_outs), *traced = zeros(8);
  for (int64_t n = 0; n < num_shared; n++) shared[n] = filled(in, shared_bytes[n]);
  for (int64_t n = 0; n < num_outs; n++) outs[n] = zeros(out_bytes[n]);
  begin(params, carry, shared, work, 0, groups);
  play(params, carry, keys, shared, work, outs, traced, 0, groups, lanes, 0, stops, num_stops, until);
  fwrite(carry, 1, head[7], out);
  for (int64_t n = 0; n < num_outs; n++) fwrite(outs[n], 1, out_bytes[n], out);
  return fclose(out) ? 3 : 0;
}
