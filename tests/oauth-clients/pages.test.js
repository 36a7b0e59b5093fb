// What people meet on the pages, without any script: by mouse, by keyboard, by mistake.

import assert from 'node:assert/strict'
import { networkInterfaces } from 'node:os'
import { after, before, test } from 'node:test'

import { launch, open } from './support/browser.js'
import { listen } from './support/callback.js'
import { ada, ask, base, question, register, somebody } from './support/okt.js'
import { allowButton, assertTitle, denyButton, email, password, signIn, signInButton } from './support/pages.js'

let browser
let hopper
before(async () => {
  browser = await launch()
  hopper = await somebody('hopper', 2)
})
after(() => browser?.close())

/** A browser, a client that waits for its answer, and the question that it sends people to us with. */
async function meet(t, { host, name, changes, ...options } = {}) {
  const callback = await listen(host)
  t.after(callback.close)
  const client = await register(callback.redirectUri, name)
  const visit = await open(browser, { elsewhere: [new URL(callback.redirectUri).origin], ...options })
  return { callback, client, visit, page: visit.page, address: question(client, changes) }
}

/** The element that has the focus. */
function focused(page) {
  return page.evaluate(() => {
    const element = document.activeElement
    const { outlineStyle, outlineWidth } = getComputedStyle(element)
    const text = element.labels?.[0]?.textContent || element.textContent
    return {
      name: element === document.body ? 'nothing' : text.trim(),
      visible: element.matches(':focus-visible') && outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2,
    }
  })
}

/** Presses Tab until the focus leaves the page; returns what it came by. One can see it all the way. */
async function tabOrder(page) {
  const names = []
  for (let presses = 0; presses < 20; presses++) {
    const { name, visible } = await focused(page)
    if (name !== 'nothing') {
      assert.ok(visible, `one can’t see that ${name} has the focus`)
      names.push(name)
    } else if (names.length > 0) {
      return names
    }
    await page.keyboard.press('Tab')
  }
  return assert.fail(`the focus never leaves the page: ${names}`)
}

test('a wrong password is named, and the page stays usable', async (t) => {
  const { callback, visit, page, address } = await meet(t)
  await page.goto(String(address))
  await email(page).fill(ada.email)
  await password(page).fill('not the password')
  await signInButton(page).click()
  await assertTitle(page, 'Error: Sign in · okt')
  assert.equal(visit.statuses.at(-1), 401)
  assert.equal(await page.getByRole('alert').textContent(), 'The e-mail address or the password is wrong.')
  assert.equal(await password(page).inputValue(), '', 'a password is never written into a page')

  await email(page).fill(ada.email)
  await password(page).fill(ada.password)
  await signInButton(page).click()
  await allowButton(page).click()
  assert.ok((await callback.answer()).searchParams.get('code'))
  await visit.close()
})

test('the decision names the app, where it is, who one is and what it could do', async (t) => {
  const { callback, visit, page, address } = await meet(t)
  await signIn(page, address, ada)
  const text = await page.getByRole('main').innerText()
  for (const part of [
    'Ada’s Agent',
    new URL(callback.redirectUri).host,
    'a program on this computer',
    ada.email,
    'See everything that you can see',
    'Add and change facts',
    'This app is not verified.',
  ]) {
    assert.ok(text.includes(part), `${part} is missing from:\n${text}`)
  }
  await visit.close()
})

test('the two buttons are of one size and side by side', async (t) => {
  const { visit, page, address } = await meet(t)
  await signIn(page, address, ada)
  for (const width of [1280, 375]) {
    await page.setViewportSize({ width, height: 800 })
    const [yes, no] = [await allowButton(page).boundingBox(), await denyButton(page).boundingBox()]
    assert.deepEqual([no.y, no.width, no.height], [yes.y, yes.width, yes.height], `at ${width} pixels`)
    assert.ok(yes.height >= 44, 'large enough for a finger')
  }
  await visit.close()
})

test('no goes back to the client as access_denied', async (t) => {
  const { callback, visit, page, address } = await meet(t)
  await signIn(page, address, ada)
  await denyButton(page).click()
  const { searchParams } = await callback.answer()
  assert.equal(searchParams.get('error'), 'access_denied')
  assert.equal(searchParams.get('state'), 'a state & more')
  assert.equal(searchParams.get('iss'), base)
  assert.equal(searchParams.get('code'), null)
  await visit.close()
})

test('the keyboard is enough, and shows where it is', async (t) => {
  const { callback, visit, page, address } = await meet(t)
  // The browser moves the focus when it first draws the page, which is after it has loaded it.
  const open = async () => {
    await page.goto(String(address))
    await page.waitForFunction(() => document.hasFocus() && document.activeElement !== document.body)
  }
  await open()
  assert.equal((await focused(page)).name, 'E-mail address', 'one can type at once')
  assert.deepEqual(await tabOrder(page), ['E-mail address', 'Password', 'Sign in'])

  await open()
  await page.keyboard.type(ada.email)
  await page.keyboard.press('Tab')
  await page.keyboard.type(ada.password)
  await page.keyboard.press('Enter')
  await allowButton(page).waitFor()
  assert.equal((await focused(page)).name, 'nothing', 'Enter decides nothing before one has chosen')
  assert.deepEqual(await tabOrder(page), ['Not you?', 'In all my repositories, also later ones', 'Allow', 'Don’t allow'])

  await page.reload()
  for (const name of ['Not you?', 'In all my repositories, also later ones', 'Allow']) {
    await page.keyboard.press('Tab')
    assert.equal((await focused(page)).name, name)
  }
  await page.keyboard.press('Enter')
  assert.ok((await callback.answer()).searchParams.get('code'))
  await visit.close()
})

test('the keyboard can say no', async (t) => {
  const { callback, visit, page, address } = await meet(t)
  await signIn(page, address, ada)
  await page.keyboard.press('Shift+Tab')
  assert.equal((await focused(page)).name, 'Don’t allow')
  await page.keyboard.press('Enter')
  assert.equal((await callback.answer()).searchParams.get('error'), 'access_denied')
  await visit.close()
})

test('some repositories can be chosen, by keyboard too, and only those are given', async (t) => {
  const { callback, client, visit, page, address } = await meet(t)
  await signIn(page, address, hopper)
  const [all, some] = [page.getByRole('radio').nth(0), page.getByRole('radio').nth(1)]
  assert.ok(await all.isChecked())
  assert.equal(await page.getByRole('checkbox').count(), 0, 'boxes that would not count can’t be ticked')

  await all.focus()
  await page.keyboard.press('ArrowDown')
  assert.ok(await some.isChecked())
  const shown = await page.getByRole('checkbox').evaluateAll((boxes) => boxes.map((box) => box.value))
  assert.deepEqual(shown.toSorted(), hopper.repositories.toSorted())
  await page.keyboard.press('Tab')
  // The newest first, by the name that its owner gave it.
  assert.deepEqual(await focused(page), { name: `hopper’s repository ${shown.length} hopper-s-repository-${shown.length}`, visible: true })
  await page.keyboard.press('Space')
  await allowButton(page).click()
  assert.ok((await callback.answer()).searchParams.get('code'))

  const { email, password } = hopper
  const { token } = await ask('POST', '/api/v1/auth/login', { body: { email, password } })
  const { data } = await ask('GET', '/api/v1/users/me/grants', { token })
  const grant = data.find((grant) => grant.client_id === client.client_id)
  assert.deepEqual(grant.repository_ids, [shown[0]])
  await visit.close()
})

test('who chooses some repositories and ticks none can go back and choose', async (t) => {
  const { callback, visit, page, address } = await meet(t)
  await signIn(page, address, hopper)
  await page.getByRole('radio').nth(1).check()
  await allowButton(page).click()
  assert.match(await page.getByRole('alert').textContent(), /at least one repository/)
  await page.goBack()
  await page.getByRole('radio').nth(0).check()
  await allowButton(page).click()
  assert.ok((await callback.answer()).searchParams.get('code'))
  await visit.close()
})

const hasIPv6 = Object.values(networkInterfaces()).flat().some(({ address }) => address === '::1')
// Browsers apply the policy of the page with the form to the redirect after it.
for (const host of ['127.0.0.1', 'localhost', '[::1]']) {
  const skip = host === '[::1]' && !hasIPv6 && 'this machine has no IPv6'
  test(`the answer reaches a client on ${host}`, { skip }, async (t) => {
    const { callback, visit, page, address } = await meet(t, { host })
    await signIn(page, address, ada)
    await allowButton(page).click()
    assert.ok((await callback.answer()).searchParams.get('code'))
    await visit.close()
  })
}

test('the answer reaches a client on the web', async () => {
  const app = 'https://app.example.org'
  const visit = await open(browser, { elsewhere: [app] })
  const { page, context } = visit
  let answer
  await context.route(`${app}/**`, (route) => {
    answer = new URL(route.request().url())
    return route.fulfill({ contentType: 'text/html', body: '<!doctype html><html lang="en"><title>App</title>' })
  })
  await signIn(page, question(await register(`${app}/callback?kept=1`, 'Research Helper')), ada)
  assert.ok((await page.getByRole('note').textContent()).includes('app.example.org'))
  await allowButton(page).click()
  await page.waitForURL(`${app}/**`)
  assert.equal(answer.searchParams.get('kept'), '1')
  assert.equal(answer.searchParams.get('iss'), base)
  assert.ok(answer.searchParams.get('code'))
  await visit.close()
})

test('who has just signed in is asked at once, and can be somebody else', async (t) => {
  const { visit, page, address } = await meet(t)
  await signIn(page, address, ada)
  await page.goto(String(address))
  await assertTitle(page, 'Allow Ada’s Agent? · okt')
  await page.getByRole('link', { name: 'Not you?' }).click()
  await assertTitle(page, 'Sign in · okt')
  assert.equal((await focused(page)).name, 'Password')
  await email(page).fill(hopper.email)
  await password(page).fill(hopper.password)
  await signInButton(page).click()
  await allowButton(page).waitFor()
  const text = await page.getByRole('main').innerText()
  assert.ok(text.includes(hopper.email) && !text.includes(ada.email), text)
  await visit.close()
})

test('a name is text, whatever is written in it', async (t) => {
  const name = '<img src=x onerror=alert(1)>"{{ 7 * 7 }}'
  const { visit, page, address } = await meet(t, { name, javaScriptEnabled: true })
  await signIn(page, address, ada)
  const heading = await page.getByRole('heading', { level: 1 }).textContent()
  assert.ok(heading.includes(name), heading)
  assert.equal(await page.locator('img, script').count(), 0)
  await visit.close()
})

for (const [what, changes, says] of [
  ['an app that nobody knows', { client_id: 'client_nobody' }, /not known/],
  ['an address that was not registered', { redirect_uri: 'https://elsewhere.example.org/' }, /did not register/],
  ['a request without PKCE', { code_challenge: undefined }, /code_challenge/],
  ['the plain kind of PKCE', { code_challenge_method: 'plain' }, /S256/],
  ['a resource that is not ours', { resource: 'https://elsewhere.example.org/' }, /invalid_target/],
]) {
  test(`${what} ends on a page of ours that says so`, async (t) => {
    const { callback, visit, page, address } = await meet(t, { changes })
    await page.goto(String(address))
    assert.equal(visit.statuses.at(-1), 400)
    assert.match(await page.getByRole('alert').textContent(), says)
    assert.equal(new URL(page.url()).origin, base)
    assert.equal(callback.answers.length, 0)
    await visit.close()
  })
}

test('a question is answered once', async (t) => {
  const { callback, visit, page, address } = await meet(t)
  await signIn(page, address, ada)
  const decision = page.url()
  await denyButton(page).click()
  await callback.answer()
  await page.goto(decision)
  assert.match(await page.getByRole('alert').textContent(), /is over/)
  assert.equal(callback.answers.length, 1)
  await visit.close()
})

test('a form in another browser is refused', async (t) => {
  const { callback, visit, page, address } = await meet(t)
  await signIn(page, address, ada)
  await visit.context.clearCookies()
  await allowButton(page).click()
  assert.equal(visit.statuses.at(-1), 403)
  assert.match(await page.getByRole('alert').textContent(), /did not come from a page of this service/)
  assert.equal(callback.answers.length, 0)
  await visit.close()
})

test('no other page can hold ours in a frame', async (t) => {
  const { visit, page, address } = await meet(t)
  const frame = `<!doctype html><iframe src="${String(address).replaceAll('&', '&amp;')}"></iframe>`
  const stranger = await listen('localhost', frame)
  t.after(stranger.close)
  await page.goto(stranger.redirectUri)
  assert.equal(await page.frameLocator('iframe').getByRole('heading', { name: 'Sign in' }).count(), 0)
  const said = [...visit.complaints].join('\n')
  assert.match(said, /frame-ancestors|X-Frame-Options/, 'the browser says why')
  await visit.context.close()
})
