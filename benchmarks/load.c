/*
 * A closed-loop HTTP/1.1 client in one thread: every client sends the same request, waits for the whole reply, checks it,
 * and sends again. It is what `make bench` measures with where a C compiler is found, because it leaves nearly the whole
 * machine to the server.
 *
 *     load PORT CLIENTS SECONDS WARMUP REQUEST_FILE EXPECT
 *
 * REQUEST_FILE holds one raw request, whose ten digits "id":1000000000 are replaced by an id of each client. EXPECT is a
 * text that the body of every good reply holds. Connects to 127.0.0.1 only. Prints one line of JSON; latencies are in
 * microseconds. Exit status: 0 measured (look at "errors"), 1 the server is gone, 2 wrong usage.
 *
 * Not done here, but in a2mcp/bench: event streams, think time, mixes of calls.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    REPLY_MAX = 256 * 1024,     /* of one reply, header and body */
    REQUEST_MAX = 1024 * 1024,
    SUB_BITS = 6,               /* 64 buckets for every doubling: 1.6 % */
    BUCKETS = 64 * 36,
    EVENTS = 256,
    RECONNECTS_MAX = 2000,
    STALL_SECONDS = 8,
    DRAIN_SECONDS = 2
};

struct client {
    int fd;
    char *request;              /* its own copy: the id differs */
    char *reply;
    size_t got;
    double sent_at;
};

struct run {
    int port, clients, epoll;
    size_t request_length;
    const char *expect;
    double measure_from, until;
    unsigned long buckets[BUCKETS], count, in_window, errors, reconnects;
    unsigned long sum, longest;
};

enum verdict { INCOMPLETE, GOOD, BAD };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void die(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* --- latencies ------------------------------------------------------------------------------------------------ */

static unsigned bucket_of(unsigned long value)
{
    int shift = value ? 63 - __builtin_clzl(value) - SUB_BITS : 0;
    unsigned long index = shift <= 0 ? value : ((unsigned long)shift << SUB_BITS) + (value >> shift);
    return index < BUCKETS ? (unsigned)index : BUCKETS - 1;
}

static unsigned long top_of(unsigned index)
{
    unsigned shift = (index >> SUB_BITS) > 1 ? (index >> SUB_BITS) - 1 : 0;
    return ((unsigned long)(index - (shift << SUB_BITS) + 1) << shift) - 1;
}

static void record(struct run *run, double seconds)
{
    unsigned long value = seconds > 0 ? (unsigned long)(seconds * 1e6) : 0;
    run->buckets[bucket_of(value)]++;
    run->count++;
    run->sum += value;
    if (value > run->longest)
        run->longest = value;
}

static unsigned long percentile(const struct run *run, double share)
{
    unsigned long wanted = (unsigned long)(share * run->count + 0.999999), seen = 0;
    for (unsigned i = 0; i < BUCKETS; i++) {
        seen += run->buckets[i];
        if (seen >= wanted && seen)
            return top_of(i) < run->longest ? top_of(i) : run->longest;
    }
    return run->longest;
}

/* --- connections ---------------------------------------------------------------------------------------------- */

static void connect_client(struct run *run, struct client *client)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)run->port)};
    struct epoll_event interest = {.events = EPOLLIN, .data.ptr = client};
    int one = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client->fd < 0 || connect(client->fd, (struct sockaddr *)&address, sizeof address))
        die("connect");
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (epoll_ctl(run->epoll, EPOLL_CTL_ADD, client->fd, &interest))
        die("epoll_ctl");
    client->got = 0;
}

static void send_request(struct run *run, struct client *client)
{
    client->got = 0;
    client->sent_at = now();
    /* The socket blocks on sending only: a request is small, and the server reads. */
    if (send(client->fd, client->request, run->request_length, MSG_NOSIGNAL) != (ssize_t)run->request_length)
        run->errors++;
}

static void reconnect(struct run *run, struct client *client)
{
    close(client->fd);
    if (++run->reconnects > RECONNECTS_MAX) {
        fprintf(stderr, "load: the server keeps closing connections\n");
        exit(1);
    }
    connect_client(run, client);
}

/* --- replies -------------------------------------------------------------------------------------------------- */

/* Is the reply in the buffer whole, and is it the one that was hoped for? `closing`: the server will close. */
static enum verdict examine(struct run *run, struct client *client, int *closing)
{
    char *text = client->reply, *blank, *length, *body;
    int whole;

    text[client->got] = 0;
    blank = strstr(text, "\r\n\r\n");
    if (!blank)
        return INCOMPLETE;
    body = blank + 4;
    blank[2] = 0; /* so that a search in the header does not run into the body */
    length = strcasestr(text, "\r\ncontent-length:");
    *closing = strcasestr(text, "\r\nconnection: close") != NULL;
    if (length)
        whole = client->got >= (size_t)(body - text) + strtoul(length + 17, NULL, 10);
    else
        whole = client->got >= (size_t)(body - text) + 5 && !memcmp(text + client->got - 5, "0\r\n\r\n", 5);
    blank[2] = '\r';
    if (!whole)
        return INCOMPLETE;
    return !strncmp(text + 9, "200", 3) && strstr(body, run->expect) ? GOOD : BAD;
}

static void finish_call(struct run *run, struct client *client, enum verdict verdict, int closing)
{
    double at = now();

    if (verdict == BAD) {
        if (!run->errors++)
            fprintf(stderr, "load: unexpected reply: %.400s\n", client->reply);
    } else {
        if (client->sent_at >= run->measure_from)
            record(run, at - client->sent_at);
        run->in_window += at >= run->measure_from && at <= run->until;
    }
    client->sent_at = 0;
    if (at >= run->until) { /* the end: this client rests, and does not care what becomes of its connection */
        epoll_ctl(run->epoll, EPOLL_CTL_DEL, client->fd, NULL);
        return;
    }
    if (closing)
        reconnect(run, client);
    send_request(run, client);
}

static void on_readable(struct run *run, struct client *client)
{
    int closing = 0;
    enum verdict verdict;
    ssize_t got = recv(client->fd, client->reply + client->got, REPLY_MAX - 1 - client->got, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) { /* closed in the middle, or the reply outgrew the buffer */
        run->errors++;
        reconnect(run, client);
        send_request(run, client);
        return;
    }
    client->got += (size_t)got;
    verdict = examine(run, client, &closing);
    if (verdict != INCOMPLETE)
        finish_call(run, client, verdict, closing);
}

/* --- the run -------------------------------------------------------------------------------------------------- */

static struct client *make_clients(struct run *run, const char *request)
{
    struct client *all = calloc((size_t)run->clients, sizeof *all);

    if (!all)
        die("memory");
    for (int i = 0; i < run->clients; i++) {
        char ident[11], *place;

        all[i].request = malloc(run->request_length + 1);
        all[i].reply = malloc(REPLY_MAX);
        if (!all[i].request || !all[i].reply)
            die("memory");
        memcpy(all[i].request, request, run->request_length + 1);
        place = strstr(all[i].request, "\"id\":1000000000");
        snprintf(ident, sizeof ident, "%010d", 1000000000 + i);
        if (place)
            memcpy(place + 5, ident, 10);
        connect_client(run, &all[i]);
    }
    return all;
}

/* Calls that are under way when the time is up may still arrive: the slowest must not be left out of the percentiles. */
static int waiting(const struct run *run, const struct client *clients)
{
    if (now() < run->until)
        return 1;
    for (int i = 0; i < run->clients; i++)
        if (clients[i].sent_at > 0)
            return now() < run->until + DRAIN_SECONDS;
    return 0;
}

static void drive(struct run *run, const struct client *clients)
{
    struct epoll_event events[EVENTS];
    double last_event = now();

    while (waiting(run, clients)) {
        int ready = epoll_wait(run->epoll, events, EVENTS, 50);
        if (ready > 0)
            last_event = now();
        else if (now() - last_event > STALL_SECONDS) {
            fprintf(stderr, "load: no reply for %d s\n", STALL_SECONDS);
            run->errors++;
            return;
        }
        for (int i = 0; i < ready; i++)
            on_readable(run, events[i].data.ptr);
    }
}

static void print(const struct run *run, double seconds, double cpu_share)
{
    printf("{\"calls_per_second\":%.1f,\"p50\":%lu,\"p90\":%lu,\"p99\":%lu,\"max\":%lu,\"mean\":%.1f,\"calls\":%lu,"
           "\"errors\":%lu,\"reconnects\":%lu,\"client_cpu_share\":%.3f}\n",
           run->in_window / seconds, percentile(run, 0.5), percentile(run, 0.9), percentile(run, 0.99), run->longest,
           run->count ? (double)run->sum / run->count : 0.0, run->count, run->errors, run->reconnects, cpu_share);
}

static double cpu_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

int main(int argc, char **argv)
{
    static char request[REQUEST_MAX];
    static struct run run;
    struct client *clients;
    double seconds, warmup, begun;
    FILE *file;

    if (argc != 7 || !(file = fopen(argv[5], "rb"))) {
        fprintf(stderr, "usage: load PORT CLIENTS SECONDS WARMUP REQUEST_FILE EXPECT\n");
        return 2;
    }
    run.port = atoi(argv[1]);
    run.clients = atoi(argv[2]);
    seconds = atof(argv[3]);
    warmup = atof(argv[4]);
    run.expect = argv[6];
    run.request_length = fread(request, 1, sizeof request - 1, file);
    fclose(file);
    if (run.port < 1 || run.clients < 1 || run.clients > 10000 || seconds <= 0 || !run.request_length) {
        fprintf(stderr, "load: a number is out of range, or the request is empty\n");
        return 2;
    }
    run.epoll = epoll_create1(EPOLL_CLOEXEC);
    clients = make_clients(&run, request);
    begun = now();
    run.measure_from = begun + warmup;
    run.until = run.measure_from + seconds;
    for (int i = 0; i < run.clients; i++)
        send_request(&run, &clients[i]);
    drive(&run, clients);
    print(&run, seconds, cpu_seconds() / (now() - begun));
    return 0;
}
