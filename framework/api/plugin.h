/* api/ (L4): the only doors for plugins, and what comm plugins share (collectives/, segment/). May include L0-L3.
 *
 * plugin.h is the C handshake: one exported symbol returns a constant descriptor.
 * The descriptor is append-only for ever: new members go to the end, struct_size tells what is there. */
#ifndef ALTIPLANO_API_PLUGIN_H
#define ALTIPLANO_API_PLUGIN_H
#include <stdint.h>

#define ALTIPLANO_ABI_MAJOR 1
#define ALTIPLANO_ABI_MINOR 0

#ifdef __cplusplus
extern "C" {
#endif

enum altiplano_plugin_kind {
  ALTIPLANO_PLUGIN_PLANNER = 1,
  ALTIPLANO_PLUGIN_SCHEDULE = 2,
  ALTIPLANO_PLUGIN_COMM = 3,
  ALTIPLANO_PLUGIN_DEVICE = 4,
  ALTIPLANO_PLUGIN_OP = 5,
  ALTIPLANO_PLUGIN_MODEL = 6,
  ALTIPLANO_PLUGIN_SCHEDULER = 7
};

typedef struct altiplano_plugin_descriptor {
  uint32_t struct_size; /* sizeof this struct as the plugin was built */
  uint16_t abi_major;   /* must equal ALTIPLANO_ABI_MAJOR */
  uint16_t abi_minor;   /* must not exceed the host's */
  uint32_t kind;        /* altiplano_plugin_kind */
  uint32_t interface_version;
  const char* name;            /* "<kind>/<name>", e.g. "schedule/1f1b" */
  const char* version;         /* of the plugin */
  const char* build_id;        /* free text: commit, date */
  const char* abi_fingerprint; /* hash of api headers, compiler ABI, standard library, language level */
  uint64_t capabilities;       /* bits of the kind's interface */
  const char* help;            /* one line */
  /* Returns a new interface object of the kind (e.g. altiplano::Schedule*), or NULL with *error set to a static or leaked text. */
  void* (*create)(const char** error);
  void (*destroy)(void* object);
} altiplano_plugin_descriptor;

/* The one exported symbol. */
typedef const altiplano_plugin_descriptor* (*altiplano_plugin_query_function)(void);
#define ALTIPLANO_PLUGIN_QUERY_SYMBOL "altiplano_plugin_query"

#ifdef __cplusplus
}
#endif
#endif
