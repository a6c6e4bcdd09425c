/* respond: an answer with the headers of every answer. */
#include <string.h>

#include "ops/http/http.h"

#define POLICY                                                                         \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "    \
    "img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

static void put_headers(struct MHD_Response *response, const char *type)
{
    (void)MHD_add_response_header(response, "Content-Type", type);
    (void)MHD_add_response_header(response, "Content-Security-Policy", POLICY);
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    (void)MHD_add_response_header(response, "Referrer-Policy", "same-origin");
    (void)MHD_add_response_header(response, "Cross-Origin-Resource-Policy",
                                  "same-origin");
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
}

enum MHD_Result answer_with(struct MHD_Connection *connection,
                            unsigned status,
                            const char *type,
                            struct MHD_Response *response)
{
    enum MHD_Result result;

    if (response == NULL)
        return MHD_NO;
    put_headers(response, type);
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

const char answer_text[] = "text/plain; charset=utf-8";

enum MHD_Result
answer_words(struct MHD_Connection *connection, unsigned status, const char *words)
{
    union {
        const char *text;
        void *buffer;
    } copied = {words}; /* it is only read, whatever the type says */

    return answer_with(connection, status, answer_text,
                       MHD_create_response_from_buffer(strlen(words), copied.buffer,
                                                       MHD_RESPMEM_MUST_COPY));
}

enum MHD_Result
answer_methods(struct MHD_Connection *connection, unsigned status, bool may_post)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);

    if (response != NULL)
        (void)MHD_add_response_header(
            response, "Allow", may_post ? "POST, OPTIONS" : "GET, HEAD, OPTIONS");
    return answer_with(connection, status, answer_text, response);
}
