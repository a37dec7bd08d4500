#pragma once
// Hot loops are functions with this attribute: the compiler makes one clone per instruction set, the loader picks at
// run time. Without a fused multiply-add that the source does not write (-ffp-contract=off), all clones give the same
// bits. (Without it under ThreadSanitizer, whose instrumentation cannot run inside the resolvers, and with
// clang, which makes no clones of templates.)
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define ALTIPLANO_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define ALTIPLANO_CLONES
#endif
