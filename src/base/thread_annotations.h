// Which lock guards what, written so that Clang can check it (-Wthread-safety, `scripts/lint
// threads`). GCC ignores it. See "Thread Safety Analysis" in Clang's manual.
#pragma once

#if defined(__clang__)
#define KOLO_THREAD_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define KOLO_THREAD_ATTRIBUTE(attribute)
#endif

/// A member that may be touched only while the mutex is held.
#define KOLO_GUARDED_BY(mutex) KOLO_THREAD_ATTRIBUTE(guarded_by(mutex))
/// A function whose caller holds the mutex; a lambda, too: [this]() KOLO_REQUIRES(mutex_) {…}.
#define KOLO_REQUIRES(...) KOLO_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
/// A function whose caller must not hold the mutex, since it takes it.
#define KOLO_EXCLUDES(...) KOLO_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
/// A function after which the mutex counts as held, because nobody else can be there; its reason
/// stands beside it.
#define KOLO_ASSERTS(...) KOLO_THREAD_ATTRIBUTE(assert_capability(__VA_ARGS__))
/// A function that hands out access to what the mutex guards; its reason stands beside it.
#define KOLO_UNCHECKED KOLO_THREAD_ATTRIBUTE(no_thread_safety_analysis)

// For mutex.h.
#define KOLO_CAPABILITY(name) KOLO_THREAD_ATTRIBUTE(capability(name))
#define KOLO_SCOPED_CAPABILITY KOLO_THREAD_ATTRIBUTE(scoped_lockable)
#define KOLO_ACQUIRE(...) KOLO_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define KOLO_RELEASE(...) KOLO_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
