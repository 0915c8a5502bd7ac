--
-- PostgreSQL database dump
--

\restrict 0eRtKr5RnY2MYI19H6xSbiERYZUbLEV6bYqrNWNfuU6PRrFBdSARIpg00Aa2hW5

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: other; Type: SCHEMA; Schema: -; Owner: postgres
--

CREATE SCHEMA other;


ALTER SCHEMA other OWNER TO postgres;

--
-- Name: mood; Type: TYPE; Schema: public; Owner: postgres
--

CREATE TYPE public.mood AS ENUM (
    'sad',
    'ok'
);


ALTER TYPE public.mood OWNER TO postgres;

--
-- Name: price; Type: DOMAIN; Schema: public; Owner: postgres
--

CREATE DOMAIN public.price AS numeric(10,2)
	CONSTRAINT price_check CHECK ((VALUE > (0)::numeric));


ALTER DOMAIN public.price OWNER TO postgres;

--
-- Name: small; Type: DOMAIN; Schema: public; Owner: postgres
--

CREATE DOMAIN public.small AS integer;


ALTER DOMAIN public.small OWNER TO postgres;

--
-- Name: f(); Type: FUNCTION; Schema: public; Owner: postgres
--

CREATE FUNCTION public.f() RETURNS text
    LANGUAGE plpgsql
    AS $$ BEGIN RETURN 'COPY public.x (a) FROM stdin;'; END $$;


ALTER FUNCTION public.f() OWNER TO postgres;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: orders; Type: TABLE; Schema: other; Owner: postgres
--

CREATE TABLE other.orders (
    id integer NOT NULL
);


ALTER TABLE other.orders OWNER TO postgres;

--
-- Name: customers; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.customers (
    a text NOT NULL,
    b integer NOT NULL,
    v text
);


ALTER TABLE public.customers OWNER TO postgres;

--
-- Name: nokey; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.nokey (
    x integer
);


ALTER TABLE public.nokey OWNER TO postgres;

--
-- Name: TABLE nokey; Type: COMMENT; Schema: public; Owner: postgres
--

COMMENT ON TABLE public.nokey IS 'it''s; a \ comment
-- not one';


--
-- Name: orders; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.orders (
    id bigint NOT NULL,
    customer text NOT NULL,
    amount numeric(12,2),
    paid boolean,
    at timestamp with time zone,
    local timestamp without time zone,
    w double precision,
    r real,
    raw bytea,
    m public.mood,
    p public.price,
    s public.small,
    iv interval,
    tags text[],
    j jsonb,
    u uuid,
    "Odd ""Name" text DEFAULT 'a;b('''::text,
    gen text GENERATED ALWAYS AS ((customer || '!'::text)) STORED
);


ALTER TABLE public.orders OWNER TO postgres;

--
-- Name: parted; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.parted (
    id integer NOT NULL,
    v text
)
PARTITION BY RANGE (id);


ALTER TABLE public.parted OWNER TO postgres;

--
-- Name: parted_1; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.parted_1 (
    id integer NOT NULL,
    v text
);


ALTER TABLE public.parted_1 OWNER TO postgres;

--
-- Name: vw; Type: VIEW; Schema: public; Owner: postgres
--

CREATE VIEW public.vw AS
 SELECT 1 AS one;


ALTER TABLE public.vw OWNER TO postgres;

--
-- Name: parted_1; Type: TABLE ATTACH; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.parted ATTACH PARTITION public.parted_1 FOR VALUES FROM (0) TO (500);


--
-- Data for Name: orders; Type: TABLE DATA; Schema: other; Owner: postgres
--

COPY other.orders (id) FROM stdin;
7
\.


--
-- Data for Name: customers; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.customers (a, b, v) FROM stdin;
c1	1	x
c2	2	xx
c3	3	xxx
c4	4	xxxx
c5	5	xxxxx
\.


--
-- Data for Name: nokey; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.nokey (x) FROM stdin;
\.


--
-- Data for Name: orders; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.orders (id, customer, amount, paid, at, local, w, r, raw, m, p, s, iv, tags, j, u, "Odd ""Name") FROM stdin;
1	Ann\t"x", \\ é\nline	10.50	t	2024-02-29 07:04:56.789+00	2024-02-29 12:34:56	0.1	0.1	\\x00ff5c	ok	9.99	7	1 year -2 days +03:04:05.5	{a,"b c"}	{"a": 1}	73ffd264-44b3-4869-90e8-e7d1dfc035d4	\\N
2		\N	f	infinity	-infinity	NaN	-Infinity	\\x	\N	\N	\N	-1 mons -00:00:00.000001	{}	\N	\N	\N
3	\\.	0.00	\N	0044-03-15 00:00:00+00 BC	12345-01-01 00:00:00.5	1e+300	1.5e-10	\N	sad	1.00	-1	00:00:00	\N	[]	\N	
\.


--
-- Data for Name: parted_1; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.parted_1 (id, v) FROM stdin;
1	a
\.


--
-- Name: orders orders_pkey; Type: CONSTRAINT; Schema: other; Owner: postgres
--

ALTER TABLE ONLY other.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (id);


--
-- Name: customers customers_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.customers
    ADD CONSTRAINT customers_pkey PRIMARY KEY (b, a);


--
-- Name: orders orders_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (id);


--
-- Name: parted parted_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.parted
    ADD CONSTRAINT parted_pkey PRIMARY KEY (id);


--
-- Name: parted_1 parted_1_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.parted_1
    ADD CONSTRAINT parted_1_pkey PRIMARY KEY (id);


--
-- Name: parted_1_pkey; Type: INDEX ATTACH; Schema: public; Owner: postgres
--

ALTER INDEX public.parted_pkey ATTACH PARTITION public.parted_1_pkey;


--
-- PostgreSQL database dump complete
--

\unrestrict 0eRtKr5RnY2MYI19H6xSbiERYZUbLEV6bYqrNWNfuU6PRrFBdSARIpg00Aa2hW5

